-- signature_points: the curve of a signature
select
    offset_s,
    bytes_per_s,
    low_bytes_per_s,
    high_bytes_per_s
from default_signature_points
where application_id = (select min(points.application_id) from default_signature_points as points)
order by filesystem, direction, offset_s
limit 10
