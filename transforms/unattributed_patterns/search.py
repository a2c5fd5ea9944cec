"""Search for patterns: split clusters of bursts by owner, and combine the parts to patterns.

A cluster may contain trains (periodic series of bursts), bursts of logged applications (its owners), and other bursts.
If the bursts of two clusters follow one another at a fixed lag, the clusters form one pattern with several bursts. A
burst is contaminated if its volume includes bytes of other applications.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from iosig.transforms.arrays import Bools, Ints, Ragged, Reals, places_of, rows_of
from iosig.transforms.periods.search import PeriodParams, detect_periods
from iosig.transforms.unattributed_patterns.burst_pairs import PairScan
from iosig.transforms.unattributed_patterns.clustering import Cluster, ClusterScan
from iosig.transforms.unattributed_patterns.cooccurrence import (
    Cooccurrence,
    PresenceSpectra,
    compute_cooccurrence,
    find_start_aligned,
)
from iosig.transforms.unattributed_patterns.lagged_bursts import (
    LaggedBursts,
    find_lagged_bursts,
    lag_tolerance,
    select_supported,
)
from iosig.transforms.unattributed_patterns.patterns import DetectedPattern, Pattern, PatternParams
from iosig.transforms.unattributed_patterns.residual_bursts import ResidualBursts, find_bursts
from iosig.transforms.unattributed_patterns.rhythms import Rhythm, estimate_period
from iosig.transforms.unattributed_patterns.trains import Train, find_train


@dataclass(frozen=True, slots=True)
class ClusterParts:
    """Parts of a cluster, as indices of bursts.

    Attributes
    ----------
    is_significant : bool
        Whether the cluster is significant.
    trains : list of (Train, Ints)
        Trains and their bursts.
    non_train : Ints
        All other bursts.
    owned : list of (Cooccurrence, Ints)
        Bursts with a named owner.
    rest : Ints
        Bursts that belong to no train and have no named owner.

    """

    is_significant: bool
    trains: list[tuple[Train, Ints]]
    non_train: Ints
    owned: list[tuple[Cooccurrence, Ints]]
    rest: Ints


@dataclass(frozen=True, slots=True)
class PatternSearch:
    """A search in one residual signal.

    Attributes
    ----------
    original_bytes, residual_bytes : Reals, shape (steps,)
        Residual traffic before and after the subtraction of rhythms.
    interval_s : float
        Length of a step [s].
    bursts : ResidualBursts
        Bursts of `residual_bytes`.
    spectra : PresenceSpectra
        Presence of the logged applications.
    params : PatternParams
        All parameters.

    """

    original_bytes: Reals
    residual_bytes: Reals
    interval_s: float
    bursts: ResidualBursts
    spectra: PresenceSpectra
    params: PatternParams

    @classmethod
    def create(
        cls,
        original_bytes: Reals,
        residual_bytes: Reals,
        interval_s: float,
        spectra: PresenceSpectra,
        params: PatternParams,
    ) -> PatternSearch:
        """Find the bursts of the residual, and prepare the search for patterns in these."""
        bursts = find_bursts(residual_bytes, interval_s, params.bursts)
        return cls(original_bytes, residual_bytes, interval_s, bursts, spectra, params)

    def build_patterns(self, parts: list[ClusterParts], is_free: Bools) -> list[DetectedPattern]:
        """Build the patterns of named owners, and combine the other parts by lag to further patterns.

        `is_free` marks bursts that belong to no cluster; it is updated in place.
        """
        unowned: list[tuple[Cluster, Train | None]] = []
        for part in parts:
            unowned += [(Cluster(members, is_significant=True), train) for train, members in part.trains]
            if len(part.rest) >= self.params.clusters.min_count:
                unowned.append((Cluster(part.rest, part.is_significant), None))
        for cluster, train in unowned:
            is_free[cluster.members] = train is None
        named_patterns = [pattern for part in parts for pattern in self.build_named(part.owned)]
        return [*named_patterns, *self.combine_clusters(unowned, is_free)]

    def find_pair_patterns(
        self, parts: list[ClusterParts], is_free: Bools, known_patterns: list[DetectedPattern]
    ) -> list[DetectedPattern]:
        """Find pairs of bursts at a fixed lag that belong to no known pattern.

        Bursts that belong to no cluster (`is_free`) pair with any available burst. Pairs that probably come from one
        application are left out, because its contaminated bursts form pairs as well.
        """
        is_available = self.compute_subtraction_ratio() <= self.params.max_subtracted_ratio
        for part in parts:
            for _, members in [*part.trains, *part.owned]:
                is_available[members] = False
        for detected in known_patterns:
            if detected.cooccurrence.outcome != "attributed":
                is_available &= ~_lies_in_pattern(self.bursts, detected.pattern)
        periods = np.array([train.period for part in parts for train, _ in part.trains])
        step_count = int(np.isfinite(self.residual_bytes).sum())
        masks = (is_available & is_free, is_available)
        scan = PairScan(self.bursts, masks, periods, step_count, self.interval_s, self.params.pairs)
        results = []
        while (pairs := scan.pop()) is not None:
            pattern = self.build_pattern([pairs.members], pairs.lag)
            owner = self.compute_cooccurrence(pattern)
            min_covered = self.params.cooccurrence.high_coverage_ratio * len(pattern.started)
            if owner.outcome == "unattributed" or (owner.outcome == "ambiguous" and owner.covered_count < min_covered):
                results.append(DetectedPattern(pattern, owner))
        return results

    def find_rhythms(self, parts: list[ClusterParts]) -> list[tuple[int, Rhythm, list[DetectedPattern]]]:
        """Find applications with periodic bursts in their runs, with the rhythm and its pattern."""
        results = []
        for part in parts:
            for application in dict.fromkeys(owner.application for owner, _ in part.owned):
                if (rhythm := self.estimate_rhythm(part.non_train, application)) is not None:
                    owned = [item for item in part.owned if item[0].application == application]
                    results.append((application, rhythm, self.build_named([self.merge_owned(owned)])))
        return results

    def merge_owned(self, owned: list[tuple[Cooccurrence, Ints]]) -> tuple[Cooccurrence, Ints]:
        """Merge parts that belong to one rhythm, i.e. bursts at different delays after the start of a run."""
        members = np.sort(np.concatenate([indices for _, indices in owned]))
        owner = min((owner for owner, _ in owned), key=lambda item: item.p_value)
        run = self._find_run(members, owner.application)
        covered_count = int((run >= 0).sum())
        return replace(owner, covered_count=covered_count, covering_run_count=len(np.unique(run[run >= 0]))), members

    def compute_subtraction_ratio(self) -> Reals:
        """Compute the bytes subtracted within each burst, as a fraction of its volume."""
        subtracted = np.nan_to_num(self.original_bytes) - np.nan_to_num(self.residual_bytes)
        total = np.concatenate([[0.0], np.cumsum(subtracted)])
        # the partial steps at both ends count toward a burst
        after = np.minimum(self.bursts.after + 1, len(total) - 1)
        ratio: Reals = (total[after] - total[self.bursts.first - 1]) / self.bursts.volume_bytes
        return ratio

    def split_clusters(self) -> tuple[list[ClusterParts], Bools]:
        """Split all clusters by owner, and mark the bursts that belong to no cluster.

        Contaminated bursts are removed together with their cluster. Artifacts of the subtraction belong to no cluster.
        """
        subtracted_ratio = self.compute_subtraction_ratio()
        scan = ClusterScan(self.bursts, self.params.clusters)
        scan.remove(np.flatnonzero(subtracted_ratio > self.params.max_train_subtracted_ratio))
        results = []
        while cluster := scan.pop():
            trains, non_train = self.extract_trains(cluster.members)
            owned, unowned = self.partition_by_owner(non_train)
            unowned = unowned[subtracted_ratio[unowned] <= self.params.max_subtracted_ratio]
            results.append(ClusterParts(cluster.is_significant, trains, non_train, owned, unowned))
            scan.remove(self.find_contaminated(results[-1]))
        return results, scan.is_remaining & (subtracted_ratio <= self.params.max_subtracted_ratio)

    def find_contaminated(self, parts: ClusterParts) -> Ints:
        """Find bursts that belong to a cluster, but differ from its other bursts because of overlapping traffic."""
        results = [self.find_due(self.build_pattern([members], train=train)) for train, members in parts.trains]
        results += [self.find_similar_in_runs(members, owner.application) for owner, members in parts.owned]
        if len(parts.rest) >= self.params.clusters.min_count:
            owner = self.compute_cooccurrence(self.group_appearances([parts.rest]))
            results.append(self.find_similar_of_likely_owner(parts.rest, owner))
        return np.unique(np.concatenate([parts.rest[:0], *results]))

    def extract_trains(self, members: Ints) -> tuple[list[tuple[Train, Ints]], Ints]:
        """Extract trains from a cluster one by one; also return the remaining bursts."""
        trains: list[tuple[Train, Ints]] = []
        runs, params = self.spectra.runs, self.params.trains
        while True:
            train = find_train(rows_of(self.bursts, members), self.original_bytes, runs, self.interval_s, params)
            if train is None:
                return trains, members
            trains.append((train, members[train.members]))
            members = np.delete(members, train.members)

    def build_named(self, owned: list[tuple[Cooccurrence, Ints]]) -> list[DetectedPattern]:
        """Build one pattern per part with a named owner."""
        return [DetectedPattern(self.build_pattern([members]), owner) for owner, members in owned]

    def estimate_rhythm(self, members: Ints, application: int) -> Rhythm | None:
        """Estimate the rhythm of a cluster's bursts within the runs of an application."""
        run = self._find_run(members, application)
        estimate = estimate_period(self.bursts.first[members], run, self.interval_s, self.params.rhythms)
        if estimate is None:
            return None
        period, spread, evidence = estimate
        first, after = (steps[members][run >= 0] for steps in (self.bursts.first, self.bursts.after))
        # the partial steps at both ends count toward a burst
        length = max(1, round(float(np.median(after - first)))) + 2
        return Rhythm(period, spread, _median_signature(self.residual_bytes, first - 1, length), first, evidence)

    def compute_cooccurrence(self, pattern: Pattern) -> Cooccurrence:
        """Find the application with the runs that coincide best with a pattern."""
        return compute_cooccurrence(
            (pattern.started, pattern.ended),
            self.spectra.runs,
            len(self.residual_bytes),
            self.interval_s,
            self.params.cooccurrence,
            is_train=pattern.is_train,
            spectra=self.spectra,
        )

    def partition_by_owner(self, members: Ints) -> tuple[list[tuple[Cooccurrence, Ints]], Ints]:
        """Split a cluster into bursts with a named owner, and the rest; several applications may have one volume."""
        owned = []
        first, runs = self.bursts.first.astype(np.float64), self.spectra.runs
        while (
            aligned := find_start_aligned(first[members], runs, self.interval_s, self.params.cooccurrence)
        ) is not None:
            owner, is_aligned = aligned
            owned.append((owner, members[is_aligned]))
            members = members[~is_aligned]
        while len(members) >= self.params.clusters.min_count:
            owner = self.compute_cooccurrence(self.group_appearances([members]))
            if owner.outcome != "attributed":
                break
            is_in = self._find_run(members, owner.application) >= 0
            owned.append((replace(owner, covered_count=int(is_in.sum())), members[is_in]))
            members = members[~is_in]
        return owned, members

    def combine_clusters(self, unowned: list[tuple[Cluster, Train | None]], is_free: Bools) -> list[DetectedPattern]:
        """Build patterns of clusters that are significant or supported by lagged bursts.

        `is_free` marks bursts that belong to no train and have no named owner.
        """
        clusters, trains = [cluster for cluster, _ in unowned], [train for _, train in unowned]
        members = [cluster.members for cluster in clusters]
        is_train = np.array([train is not None for train in trains], np.bool_)
        lagged = [
            []
            if train
            else find_lagged_bursts(self.bursts, indices, is_free, len(clusters), self.interval_s, self.params.lags)
            for indices, train in zip(members, is_train.tolist(), strict=True)
        ]
        patterns, leftovers = [], []
        for group in _group_clusters(self.bursts, members, is_train, lagged, self.interval_s, self.params):
            links = [link for index in group for link in lagged[index]]
            if links:
                supported = [select_supported(members[index], lagged[index], self.params.lags) for index in group]
                max_lag = max(abs(link.lag) for link in links)
                included = [*supported, *(link.follows for link in links)]
                patterns.append(self.build_pattern(included, max_lag))
                significant = [members[index] for index in group if clusters[index].is_significant]
                leftovers += [np.setdiff1d(indices, np.concatenate(included)) for indices in significant]
            elif len(group) > 1 or clusters[group[0]].is_significant:
                patterns.append(self.build_pattern([members[index] for index in group], train=trains[group[0]]))
        min_count = self.params.clusters.min_count
        results = [
            DetectedPattern(pattern, self.compute_cooccurrence(pattern))
            for pattern in patterns
            if len(pattern.started) >= min_count
        ]
        return results + [self.build_leftover(indices) for indices in leftovers if len(indices) >= min_count]

    def build_leftover(self, members: Ints) -> DetectedPattern:
        """Build the pattern of a cluster's bursts without lagged bursts, never with the outcome `unattributed`.

        They come from another application with that volume, or from the same application with hidden lagged bursts.
        """
        pattern = self.build_pattern([members])
        owner = self.compute_cooccurrence(pattern)
        return DetectedPattern(
            pattern, replace(owner, outcome="ambiguous") if owner.outcome == "unattributed" else owner
        )

    def _find_run(self, members: Ints, application: int) -> Ints:
        """Index of the application's run that contains each burst; -1 for none."""
        runs, slack = self.spectra.runs, self.params.cooccurrence.slack_s / self.interval_s
        application_runs = np.flatnonzero(runs.application == application)
        is_started = runs.started[application_runs, None] <= self.bursts.first[members] + slack
        is_in = is_started & (runs.ended[application_runs, None] >= self.bursts.after[members] - slack)
        return (
            np.where(is_in.any(axis=0), application_runs[is_in.argmax(axis=0)], -1)
            if len(application_runs)
            else np.full(len(members), -1)
        )

    def find_similar_in_runs(self, members: Ints, application: int) -> Ints:
        """Find bursts in the runs of an application that resemble `members` in volume and width."""
        bursts = self.bursts
        candidates = np.arange(len(bursts))
        for values, reach in zip((bursts.volume_bytes, bursts.width), self.params.contamination_reach, strict=True):
            candidates = candidates[np.abs(np.log(values[candidates] / np.median(values[members]))) <= reach]
        return candidates[self._find_run(candidates, application) >= 0]

    def find_similar_of_likely_owner(self, members: Ints, owner: Cooccurrence) -> Ints:
        """Find similar bursts in the runs of an unsure owner with high coverage; none for any other owner."""
        min_covered = self.params.cooccurrence.high_coverage_ratio * len(members)
        is_likely = owner.outcome == "ambiguous" and owner.covered_count >= min_covered
        return self.find_similar_in_runs(members, owner.application) if is_likely else np.zeros(0, np.int64)

    def find_due(self, train: Pattern) -> Ints:
        """Find bursts where appearances of a train are missing; they have its volume, or more due to contamination."""
        if not train.is_train:
            return np.zeros(0, np.int64)
        gaps = np.diff(train.started)
        cycles = gaps / train.period
        counts = np.maximum(np.rint(cycles), 1.0).astype(np.int64)
        # after a long gap, the train may have restarted, unless it is still in phase
        is_restart = (counts > self.params.max_gap_ratio * 2) & (np.abs(cycles - counts) > self.params.max_phase_error)
        counts[is_restart] = 1
        gap = np.repeat(np.arange(len(gaps)), counts)
        cycle = np.arange(len(gap)) - np.repeat(np.cumsum(counts) - counts, counts)
        due = (train.started[gap] + cycle * (gaps / counts)[gap])[cycle > 0]
        tolerance = lag_tolerance(train.period, self.interval_s, self.params.lags)
        nearest = np.append(due, np.inf)[np.searchsorted(due, self.bursts.first - tolerance)]
        log_ratio = np.log(self.bursts.volume_bytes / np.median(train.volume_bytes))
        low, high = self.params.replacement_range
        is_similar = (log_ratio >= low) & (log_ratio <= high)
        return np.flatnonzero(is_similar & (nearest <= self.bursts.after + tolerance))

    def build_pattern(self, clusters: list[Ints], max_lag: float = 0.0, train: Train | None = None) -> Pattern:
        """Build the pattern of some clusters, with its period if it is periodic.

        `max_lag` limits the distance between bursts of one appearance, in steps (0: derived from the clusters). `train`
        is the train that the clusters form, if known.
        """
        pattern = self.group_appearances(clusters, max_lag)
        if train is not None:
            return replace(pattern, period=train.period, period_p_value=train.p_value)
        return _detect_period(pattern, self.interval_s, self.params)

    def group_appearances(self, clusters: list[Ints], max_lag: float = 0.0) -> Pattern:
        """Group bursts to appearances, which start with their first burst; estimate no period."""
        bursts = self.bursts
        members = np.unique(np.concatenate(clusters))
        first, after, volume = bursts.first[members], bursts.after[members], bursts.volume_bytes[members]
        if max_lag:
            max_lag += lag_tolerance(max_lag, self.interval_s, self.params.lags)
        elif len(clusters) > 1:
            max_lag = _separating_gap(first, len(clusters))
        starts = np.flatnonzero(np.append(True, np.diff(first) > max_lag))
        ended = after[np.append(starts[1:], len(members)) - 1]
        length = round(float(np.median(ended - first[starts])))
        return Pattern(
            first[starts].astype(np.float64),
            ended.astype(np.float64),
            np.add.reduceat(volume, starts),
            np.sqrt(np.add.reduceat(bursts.error_bytes[members] ** 2, starts)),
            _median_signature(self.residual_bytes, first[starts], length),
            max(1, round(len(members) / len(starts))) if max_lag else 1,
        )


def _lies_in_pattern(bursts: ResidualBursts, pattern: Pattern) -> Bools:
    """Whether each burst lies in an appearance of a pattern."""
    after = np.searchsorted(pattern.ended, bursts.first, side="right")
    is_in: Bools = np.append(pattern.started, np.inf)[after] < bursts.after
    return is_in


# ---- clusters that form one pattern


def _group_clusters(
    bursts: ResidualBursts,
    clusters: list[Ints],
    is_train: Bools,
    lagged: list[list[LaggedBursts]],
    interval_s: float,
    params: PatternParams,
) -> list[list[int]]:
    """Group clusters that form one pattern: trains at a fixed lag, and others with common lagged bursts."""
    pairs = [
        (index, other_index)
        for index in range(len(clusters))
        for other_index in range(len(clusters))
        if index != other_index
        and (
            _has_fixed_lag(bursts, clusters[index], clusters[other_index], interval_s, params)
            if is_train[index] or is_train[other_index]
            else sum(np.isin(link.follows, clusters[other_index]).sum() for link in lagged[index])
            >= params.lags.min_count
        )
    ]
    row, column = np.array(pairs, np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(row)), (row, column)), shape=(len(clusters), len(clusters)))
    _, groups = connected_components(graph, directed=False)
    return [np.flatnonzero(groups == group).tolist() for group in range(int(groups.max(initial=-1)) + 1)]


def _has_fixed_lag(
    bursts: ResidualBursts, leads: Ints, follows: Ints, interval_s: float, params: PatternParams
) -> bool:
    """Whether most bursts of one cluster follow those of another at one lag."""
    lead_steps, follow_steps = bursts.first[leads], bursts.first[follows]
    if not 0.5 <= len(leads) / len(follows) <= 2.0:
        return False
    after = np.searchsorted(follow_steps, lead_steps, side="right")
    lags = np.append(follow_steps, np.iinfo(np.int64).max // 2)[after] - lead_steps
    near_lags = lags[lags * interval_s <= params.lags.max_lag_s]
    min_count = params.min_joint_ratio * max(len(leads), len(follows))
    if len(near_lags) < min_count:
        return False
    median = float(np.median(near_lags))
    is_at_lag = np.abs(near_lags - median) <= lag_tolerance(median, interval_s, params.lags)
    return bool(is_at_lag.sum() >= min_count)


def _separating_gap(first: Ints, cluster_count: int) -> float:
    """Find a gap between typical gaps within and between appearances of `cluster_count` bursts, to separate them.

    All gaps of an appearance except the last one lie within the appearance.
    """
    gaps = np.sort(np.diff(first)).astype(np.float64)
    inner_count = round(len(gaps) * (cluster_count - 1) / cluster_count)
    low, high = gaps[max(inner_count - 1, 0)], gaps[min(inner_count, len(gaps) - 1)]
    return float(np.sqrt(max(low, 1.0) * max(high, 1.0)))


def _median_signature(residual_bytes: Reals, first: Ints, count: int) -> Reals:
    """Median of the residual over all starts, in each of `count` steps from a start."""
    count = max(1, min(count, len(residual_bytes)))
    complete = first[first + count <= len(residual_bytes)]
    values = np.nan_to_num(residual_bytes[places_of(complete, np.full(len(complete), count))])
    signature: Reals = np.median(values.reshape(-1, count), axis=0) if len(complete) else np.zeros(0)
    return signature


# ---- periods


def _detect_period(pattern: Pattern, interval_s: float, params: PatternParams) -> Pattern:
    """Add the period of a pattern if the default method of `iosig.transforms.periods` detects one.

    The signal is the volume of appearances in the longest interval without a long gap.
    """
    selected = _longest_interval(pattern.started, params)
    if selected.stop - selected.start < params.min_cycles:
        return pattern
    started, volume = pattern.started[selected], pattern.volume_bytes[selected]
    step = float(np.median(np.diff(started))) / params.samples_per_cycle
    sample = ((started - started[0]) / step + 0.5 * params.samples_per_cycle).astype(np.int64)
    signal: Reals = np.bincount(sample, volume, sample[-1] + params.samples_per_cycle // 2).astype(np.float64)
    results = detect_periods(
        Ragged(signal, np.array([0, len(signal)])),
        np.array([1.0 / step]),
        np.zeros(1),
        PeriodParams(methods=("null_tested",)),
    )
    detections, _ = results["null_tested"]
    if not detections.is_periodic[0]:
        return pattern
    p_value = float(detections.false_alarm_probability[0])
    return replace(pattern, period=1.0 / float(detections.frequency_hz[0]), period_p_value=p_value)


def _longest_interval(started: Reals, params: PatternParams) -> slice:
    """Longest sequence of appearances without a long gap."""
    gaps = np.diff(started)
    if not len(gaps):
        return slice(0, len(started))
    # most gaps of a train are one period, or two if an appearance is hidden
    cuts = np.flatnonzero(gaps > params.max_gap_ratio * np.quantile(gaps, 0.25)) + 1
    edges = np.concatenate([[0], cuts, [len(started)]])
    longest = int(np.diff(edges).argmax())
    return slice(int(edges[longest]), int(edges[longest + 1]))
