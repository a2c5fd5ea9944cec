"""Define custom expectations: rules with arithmetic, or across columns or rows.

Great Expectations registers each class under its name in snake case when this module is imported; `import
iosig.expectations` ensures this. Each class evaluates rows with pandas; its `_holds` returns a mask of the rows that
are as expected. A comparison with NULL violates no rule unless the class states otherwise.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any, ClassVar, Literal

import pandas as pd
from great_expectations.core import ExpectationValidationResult
from great_expectations.execution_engine import PandasExecutionEngine
from great_expectations.expectations.expectation import ColumnMapExpectation, MulticolumnMapExpectation
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.expectations.metrics.map_metric_provider import (
    ColumnMapMetricProvider,
    MulticolumnMapMetricProvider,
    column_condition_partial,
    multicolumn_condition_partial,
)
from great_expectations.render import RenderedStringTemplateContent
from great_expectations.render.components import LegacyRendererType
from great_expectations.render.renderer.renderer import renderer


class _Sentence:
    """Mixin that renders an expectation in Data Docs as one sentence, from the rule or by default from the class."""

    @classmethod
    @renderer(renderer_type=LegacyRendererType.PRESCRIPTIVE)
    def _prescriptive_renderer(
        cls,
        configuration: ExpectationConfiguration | None = None,
        result: ExpectationValidationResult | None = None,
        runtime_configuration: dict[str, Any] | None = None,
    ) -> list[RenderedStringTemplateContent]:
        if configuration is None:
            return []
        arguments = configuration.kwargs
        columns = ", ".join(arguments["column_list"] if "column_list" in arguments else [arguments["column"]])
        sentence = (configuration.meta or {}).get("doc") or (cls.__doc__ or "").partition("\n")[0]
        params = {"columns": columns, "sentence": sentence}
        styling = (runtime_configuration or {}).get("styling")
        text = {"template": "$columns: $sentence", "params": params, "styling": styling}
        return [RenderedStringTemplateContent(content_block_type="string_template", string_template=text)]


class _Rows(_Sentence, MulticolumnMapExpectation):
    """Base class of expectations about several columns of each row.

    A subclass defines `_holds`, and lists its arguments in `success_keys`.
    """

    ignore_row_if: Literal["all_values_are_missing", "any_value_is_missing", "never"] = "never"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.map_metric = f"multicolumn_values.{cls.__name__}"

        class Metric(MulticolumnMapMetricProvider):
            condition_metric_name = cls.map_metric
            condition_value_keys = tuple(name for name in cls.success_keys if name != "mostly")

            @multicolumn_condition_partial(engine=PandasExecutionEngine)
            def _pandas(self, column_list: pd.DataFrame, _metrics: Any, **values: Any) -> pd.Series:
                return cls._holds(column_list, **values)

    #: function of the columns and the arguments by name; returns whether each row is as expected
    _holds: ClassVar[Callable[..., pd.Series]]


class _Values(_Sentence, ColumnMapExpectation):
    """Base class of expectations about the non-NULL values of one column; subclasses are like those of `_Rows`."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.map_metric = f"column_values.{cls.__name__}"

        class Metric(ColumnMapMetricProvider):
            condition_metric_name = cls.map_metric
            condition_value_keys = tuple(name for name in cls.success_keys if name != "mostly")

            @column_condition_partial(engine=PandasExecutionEngine)
            def _pandas(self, column: pd.Series, _metrics: Any, **values: Any) -> pd.Series:
                return cls._holds(column, **values)

    #: function of the column; returns whether each value is as expected
    _holds: ClassVar[Callable[..., pd.Series]]


def _series(columns: pd.DataFrame) -> list[pd.Series]:
    return [column for _, column in columns.items()]


def _all(conditions: Sequence[pd.Series]) -> pd.Series:
    return reduce(operator.and_, conditions)


def _are_null_together(columns: pd.DataFrame) -> pd.Series:
    is_null = columns.isna()
    return is_null.all(axis=1) | ~is_null.any(axis=1)


def _is_first_present_with_others(columns: pd.DataFrame) -> pd.Series:
    is_present = columns.notna()
    return is_present.iloc[:, 0] == is_present.iloc[:, 1:].all(axis=1)


def _seconds(times: pd.Series) -> pd.Series:
    return times.dt.total_seconds()


# ---- which columns have a value


class ExpectMulticolumnValuesToBePresent(_Rows):
    """Every column in the list has a value."""

    @staticmethod
    def _holds(columns: pd.DataFrame) -> pd.Series:
        return columns.notna().all(axis=1)


class ExpectMulticolumnValuesToBeNull(_Rows):
    """All columns in the list are NULL."""

    @staticmethod
    def _holds(columns: pd.DataFrame) -> pd.Series:
        return columns.isna().all(axis=1)


class ExpectMulticolumnFlagAndValuesToBeUnset(_Rows):
    """The first column is false, and no other column has a value."""

    @staticmethod
    def _holds(columns: pd.DataFrame) -> pd.Series:
        return columns.iloc[:, 0].eq(other=False) & columns.iloc[:, 1:].isna().all(axis=1)


class ExpectMulticolumnValuesToBeNullTogether(_Rows):
    """All columns have a value, or none has."""

    @staticmethod
    def _holds(columns: pd.DataFrame) -> pd.Series:
        return _are_null_together(columns)


class ExpectMulticolumnFirstToBePresentWithOthers(_Rows):
    """The first column has a value exactly where all the others have one."""

    @staticmethod
    def _holds(columns: pd.DataFrame) -> pd.Series:
        return _is_first_present_with_others(columns)


class ExpectMulticolumnValuesToBePresentOnlyFor(_Rows):
    """The other columns have values exactly where the first is in the set (outside the set if `is_in_set` is false)."""

    success_keys = ("mostly", "value_set", "is_in_set")
    value_set: list[str]
    is_in_set: bool = True

    @staticmethod
    def _holds(columns: pd.DataFrame, value_set: list[str], is_in_set: bool) -> pd.Series:
        is_due = columns.iloc[:, 0].isin(value_set) == is_in_set
        return _all([column.notna() == is_due for column in _series(columns)[1:]])


class ExpectMulticolumnPeriodToBeOfPeriodic(_Rows):
    """Of outcome, frequency, period and false-alarm probability: all have values if periodic, else no period has."""

    @staticmethod
    def _holds(columns: pd.DataFrame) -> pd.Series:
        outcome, frequency, period, probability = _series(columns)
        is_complete = frequency.notna() & period.notna() & probability.notna()
        is_periodic = outcome == "periodic"
        return (is_periodic & is_complete) | (~is_periodic & frequency.isna() & period.isna())


class ExpectMulticolumnSharedAndOwnBytesToBeApart(_Rows):
    """Rows of the shared source have no own bytes, and all other rows have no shared bytes.

    The columns are source, shared bytes and own bytes, in this order.
    """

    success_keys = ("mostly", "shared_source")
    shared_source: str

    @staticmethod
    def _holds(columns: pd.DataFrame, shared_source: str) -> pd.Series:
        source, shared_bytes, own_bytes = _series(columns)
        is_shared = source == shared_source
        return (is_shared & own_bytes.isna()) | (~is_shared & shared_bytes.isna())


# ---- relations between values


class ExpectMulticolumnFlagToMarkValues(_Rows):
    """The first column is true exactly where the second is in the set."""

    success_keys = ("mostly", "value_set")
    value_set: list[str]

    @staticmethod
    def _holds(columns: pd.DataFrame, value_set: list[str]) -> pd.Series:
        flag, values = _series(columns)
        return flag.eq(other=True) == values.isin(value_set)


class ExpectMulticolumnFlagToMarkExcess(_Rows):
    """The first column is true exactly where the second exceeds the third."""

    @staticmethod
    def _holds(columns: pd.DataFrame) -> pd.Series:
        flag, values, limits = _series(columns)
        return flag.eq(other=True) == (values > limits)


class ExpectMulticolumnValuesToBeAllowedFor(_Rows):
    """The second column has one of the values that are allowed for the value of the first."""

    success_keys = ("mostly", "allowed")
    allowed: dict[str, list[str]]

    @staticmethod
    def _holds(columns: pd.DataFrame, allowed: Mapping[str, Sequence[str]]) -> pd.Series:
        kinds, values = _series(columns)
        return reduce(
            operator.or_, [(kinds == kind) & values.isin(allowed_values) for kind, allowed_values in allowed.items()]
        )


# ---- order and equality


class ExpectMulticolumnFirstToBeAtMostSecond(_Rows):
    """The first column is at most the second times `factor` plus `margin`; NULL is not."""

    success_keys = ("mostly", "factor", "margin")
    factor: float = 1.0
    margin: float = 0.0

    @staticmethod
    def _holds(columns: pd.DataFrame, factor: float, margin: float) -> pd.Series:
        values, limits = _series(columns)
        return values <= limits * factor + margin


class ExpectMulticolumnValuesToBeInOrder(_Rows):
    """In each group, no column exceeds the next one times `factor`; with `strict_ends`, the last exceeds the first.

    Without `group_size`, all the columns are one group.
    """

    success_keys = ("mostly", "group_size", "factor", "strict_ends")
    group_size: int | None = None
    factor: float = 1.0
    strict_ends: bool = False

    @staticmethod
    def _holds(columns: pd.DataFrame, group_size: int | None, factor: float, strict_ends: bool) -> pd.Series:
        series = _series(columns)
        size = group_size or len(series)
        groups = [series[start : start + size] for start in range(0, len(series), size)]
        broken = [low > high * factor for group in groups for low, high in pairwise(group)]
        broken += [group[0] >= group[-1] for group in groups if strict_ends]
        return ~reduce(operator.or_, broken)


class ExpectMulticolumnPairsToBeEqual(_Rows):
    """The first column equals the second, the third the fourth, and so on; none is below `min_value`, and none NULL."""

    success_keys = ("mostly", "min_value")
    min_value: float | None = None

    @staticmethod
    def _holds(columns: pd.DataFrame, min_value: float | None) -> pd.Series:
        series = _series(columns)
        conditions = [first == second for first, second in zip(series[::2], series[1::2], strict=True)]
        if min_value is not None:
            conditions += [column >= min_value for column in series]
        return _all(conditions)


class ExpectMulticolumnSumsToBeEqual(_Rows):
    """The first `first_count` columns have the same sum as the others, within the relative `tolerance`."""

    success_keys = ("mostly", "first_count", "tolerance")
    first_count: int
    tolerance: float

    @staticmethod
    def _holds(columns: pd.DataFrame, first_count: int, tolerance: float) -> pd.Series:
        first, second = (
            reduce(operator.add, part) for part in (_series(columns)[:first_count], _series(columns)[first_count:])
        )
        return ~((first - second).abs() > tolerance * first.abs())


class ExpectMulticolumnValuesToDiffer(_Rows):
    """The second column differs from the first."""

    @staticmethod
    def _holds(columns: pd.DataFrame) -> pd.Series:
        first, second = _series(columns)
        return first != second


class ExpectMulticolumnValuesToBePositive(_Rows):
    """Every column is above zero; NULL is not."""

    @staticmethod
    def _holds(columns: pd.DataFrame) -> pd.Series:
        return (columns > 0).all(axis=1)


class ExpectMulticolumnFirstToBePositiveWithOthers(_Rows):
    """The first column is above zero wherever another one is; NULL is not."""

    @staticmethod
    def _holds(columns: pd.DataFrame) -> pd.Series:
        is_positive = columns > 0
        return is_positive.iloc[:, 0] | ~is_positive.iloc[:, 1:].any(axis=1)


class ExpectMulticolumnValuesToBePositiveTogether(_Rows):
    """All columns are above zero, or none is; NULL is not."""

    @staticmethod
    def _holds(columns: pd.DataFrame) -> pd.Series:
        is_positive = columns > 0
        return is_positive.all(axis=1) | ~is_positive.any(axis=1)


class ExpectMulticolumnIntervalToBeWhole(_Rows):
    """Of probability, low and high end: all or none has a value, and the low end does not exceed the high one."""

    @staticmethod
    def _holds(columns: pd.DataFrame) -> pd.Series:
        _, low, high = _series(columns)
        return _are_null_together(columns) & ~(low > high)


# ---- time


class ExpectMulticolumnDelaysToBeShort(_Rows):
    """No instant is more than `max_delay_s` after that of the first column."""

    success_keys = ("mostly", "max_delay_s", "strict_max")
    max_delay_s: float
    strict_max: bool = False

    @staticmethod
    def _holds(columns: pd.DataFrame, max_delay_s: float, strict_max: bool) -> pd.Series:
        first, *later_times = _series(columns)
        exceeds = operator.ge if strict_max else operator.gt
        return ~reduce(operator.or_, [exceeds(_seconds(later - first), max_delay_s) for later in later_times])


class ExpectMulticolumnDateToBeUtcDayOfInstant(_Rows):
    """The first column is the UTC day of the instant in the second column, NULL where the instant is NULL."""

    @staticmethod
    def _holds(columns: pd.DataFrame) -> pd.Series:
        dates, instants = _series(columns)
        days = instants.dt.tz_localize(None).dt.floor("D")
        return (dates == days) | (dates.isna() & instants.isna())


class ExpectMulticolumnDurationToMatchTimes(_Rows):
    """Of duration, start and end: the duration is the time from start to end, NULL where start or end is NULL."""

    success_keys = ("mostly", "tolerance_s")
    tolerance_s: float

    @staticmethod
    def _holds(columns: pd.DataFrame, tolerance_s: float) -> pd.Series:
        duration, started_at, ended_at = _series(columns)
        is_off = (_seconds(ended_at - started_at) - duration).abs() > tolerance_s
        return _is_first_present_with_others(columns) & ~is_off


class ExpectMulticolumnGridToStartWithRun(_Rows):
    """Of the start of a grid, that of its run, and its interval: the starts are at most one interval apart."""

    success_keys = ("mostly", "tolerance_s")
    tolerance_s: float

    @staticmethod
    def _holds(columns: pd.DataFrame, tolerance_s: float) -> pd.Series:
        grid_started_at, started_at, interval_s = _series(columns)
        return ~(_seconds(grid_started_at - started_at).abs() > interval_s + tolerance_s)


class ExpectMulticolumnGridToCoverRun(_Rows):
    """Of steps, interval and duration: the steps cover the duration, except for a few missing steps."""

    success_keys = ("mostly", "missing_step_count")
    missing_step_count: int

    @staticmethod
    def _holds(columns: pd.DataFrame, missing_step_count: int) -> pd.Series:
        step_count, interval_s, duration_s = _series(columns)
        return ~(step_count * interval_s + missing_step_count * interval_s < duration_s)


class ExpectColumnYearsToBeNearMedian(_Values):
    """The year of each timestamp is within `max_year_count` years of the median year of all rows."""

    success_keys = ("mostly", "max_year_count")
    max_year_count: int

    @staticmethod
    def _holds(column: pd.Series, max_year_count: int) -> pd.Series:
        years = column.dt.year
        return (years - years.median()).abs() <= max_year_count


# ---- arithmetic of periods and rates


class ExpectColumnValuesToBeWholeNumbers(_Values):
    """Each value is a whole number."""

    @staticmethod
    def _holds(column: pd.Series) -> pd.Series:
        return column % 1 == 0


class ExpectMulticolumnValuesToBeReciprocal(_Rows):
    """The product of the columns is 1, within `tolerance`."""

    success_keys = ("mostly", "tolerance")
    tolerance: float

    @staticmethod
    def _holds(columns: pd.DataFrame, tolerance: float) -> pd.Series:
        product = reduce(operator.mul, _series(columns))
        return ~((product > 1 + tolerance) | (product < 1 - tolerance))


class ExpectMulticolumnWindowToHoldCycles(_Rows):
    """Of period, start and end of a window: the window times `factor` covers `min_cycle_count` periods."""

    success_keys = ("mostly", "min_cycle_count", "factor")
    min_cycle_count: float
    factor: float = 1.0

    @staticmethod
    def _holds(columns: pd.DataFrame, min_cycle_count: float, factor: float) -> pd.Series:
        period_s, start_s, end_s = _series(columns)
        return ~(min_cycle_count * period_s > (end_s - start_s) * factor)


class ExpectMulticolumnDutyToBeOfBurst(_Rows):
    """Of duty ratio, burst width and frequency: the ratio is width times frequency, at most 1; NULL without width."""

    success_keys = ("mostly", "tolerance")
    tolerance: float

    @staticmethod
    def _holds(columns: pd.DataFrame, tolerance: float) -> pd.Series:
        duty_ratio, width_s, frequency_hz = _series(columns)
        high, low = (factor * width_s * frequency_hz for factor in (1 + tolerance, 1 - tolerance))
        is_off = (duty_ratio < 1) & ((duty_ratio > high) | (duty_ratio < low))
        return (width_s.isna() == duty_ratio.isna()) & ~is_off


class ExpectMulticolumnScoreToBeOfSigmas(_Rows):
    """Of score and two deviations: the score is 1 less both deviations, where they do not exceed 1."""

    success_keys = ("mostly", "tolerance")
    tolerance: float

    @staticmethod
    def _holds(columns: pd.DataFrame, tolerance: float) -> pd.Series:
        score, first, second = _series(columns)
        high, low = (bound - first - second for bound in (1 + tolerance, 1 - tolerance))
        return ~((first + second <= 1) & ((score > high) | (score < low)))


class ExpectMulticolumnVolumeToBeBelowPeak(_Rows):
    """Of volume, peak rate and duration: the volume is at most the peak rate times the duration."""

    success_keys = ("mostly", "factor")
    factor: float = 1.0

    @staticmethod
    def _holds(columns: pd.DataFrame, factor: float) -> pd.Series:
        volume, peak, duration_s = _series(columns)
        return ~(peak * duration_s * factor < volume)
