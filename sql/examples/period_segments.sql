-- period_segments: runs whose period changes
select
    subject_kind,
    subject_id,
    direction,
    list(period_s order by window_start_s) as periods_s
from period_segments
group by all
having count(*) > 1
order by count(*) desc
limit 10
