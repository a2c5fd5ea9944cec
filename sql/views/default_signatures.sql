-- default_signatures: signatures of the default method
select * exclude (is_default) -- noqa: AM04
from signatures
where is_default
