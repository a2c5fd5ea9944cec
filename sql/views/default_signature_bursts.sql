-- default_signature_bursts: bursts of the signatures of the default method, with the signature's expected correlation
select
    signature_bursts.*, -- noqa: AM04
    default_signatures.expected_correlation
from signature_bursts
inner join default_signatures using (application_id, filesystem, direction, metric, method)
