-- default_periods: periods of the default method
select * exclude (is_default) -- noqa: AM04
from periods
where is_default
