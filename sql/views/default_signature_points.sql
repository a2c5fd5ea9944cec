-- default_signature_points: seconds of the signatures of the default method
select signature_points.* -- noqa: AM04
from signature_points
semi join default_signatures using (application_id, filesystem, direction, metric, method)
