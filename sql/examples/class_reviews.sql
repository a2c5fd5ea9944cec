-- class_reviews: accuracy of classes by manual verification
select
    direction,
    label_verdict,
    count(*) as review_count
from class_reviews
group by all
order by all
