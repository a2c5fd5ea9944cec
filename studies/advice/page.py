"""What the study of advice shows: its page, and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import polars as pl

from iosig.studies.advice.figures import draw_policies, draw_settings
from iosig.studies.advice.running import (
    ADVICE,
    GRID_S,
    ORACLE_STEP_S,
    POLICIES,
    SETTINGS,
    SHORT_DELAY_S,
    USUAL,
    Results,
    compared,
)
from iosig.studies.pages import Block, Figure, Table, tabled

#: who a policy is held against: what schedulers do now, and what they could do with mean loads alone
RIVAL, STRONGER_RIVAL = "least loaded", "least mean"
_ADVISED, _ADVISED_SHORT, _WAITING = "contention, delayed", "contention, short delay", "least loaded, as late"
#: policies that a table of settings has, the others being the same in most of them
_SHOWN = ("least mean", "correlation", "contention", _ADVISED_SHORT, _ADVISED, "oracle")


def document(results: Results) -> list[dict[str, object]]:
    """Return the results as plain values."""
    return results.runs.to_dicts()


def tables(results: Results) -> Iterator[tuple[str, Table]]:
    """Yield titles and tables."""
    yield "Where everything usual is known", policy_table(results)
    yield "What errors do to it", setting_table(results)


def policy_table(results: Results) -> Table:
    """Return what each policy comes to in the usual setting."""
    beside = compared(results, STRONGER_RIVAL).select("setting", "policy", rival_wins="wins", rival_losses="losses")
    found = compared(results, RIVAL).join(beside, on=["setting", "policy"], maintain_order="left")
    return Table.of(
        found.filter(pl.col("setting") == USUAL),
        ("policy", "{policy}"),
        ("contended / own bytes", "{contended_ratio:.3f}"),
        ("/ least loaded", "{to_rival:.2f}"),
        ("fewer", "{wins}"),
        ("same", "{ties}"),
        ("more", "{losses}"),
        ("fewer / more than least mean", "{rival_wins} / {rival_losses}"),
        ("I/O slowdown", "{io_slowdown:.3f}"),
        ("others' I/O slowdown", "{others_slowdown:.3f}"),
        ("mean delay", "{delay_s:.0f} s"),
    )


@tabled("setting", "policy", "/ least loaded", "fewer", "same", "more", "/ least mean", "fewer", "same", "more")
def setting_table(results: Results) -> Iterator[Sequence[str]]:
    """Yield what the policies come to in every setting."""
    for setting in SETTINGS:
        rivals = [_by_policy(results, rival, setting) for rival in (RIVAL, STRONGER_RIVAL)]
        for policy in _SHOWN:
            cells = [
                cell
                for rows in rivals
                for cell in (
                    f"{rows[policy]['to_rival']:.2f}",
                    *(str(rows[policy][column]) for column in ("wins", "ties", "losses")),
                )
            ]
            yield (setting, policy, *cells)


def _by_policy(results: Results, rival: str, setting: str) -> dict[str, dict[str, float]]:
    rows = compared(results, rival).filter(pl.col("setting") == setting)
    return {row["policy"]: row for row in rows.iter_rows(named=True)}


def blocks(results: Results) -> Iterator[Block]:
    """Yield what the page is made of."""
    yield "# What advice on where and when to start is worth"
    yield (
        "Who knows the signatures of what runs on a machine's partitions can tell where a further application would "
        "be least in the way, and how long it should wait to do its bursts between the others' (IOSI: Liu et al., "
        '"Automatic identification of application I/O signatures from noisy server-side traces", FAST\'14, section '
        "6.4). Here a new application is put by several policies into the same mixes of running ones, and what "
        "follows is simulated."
    )
    yield Table(("policy", "what it takes"), list(POLICIES.items()))
    yield _in_short(results)
    of_usual = results.runs.filter(pl.col("setting") == USUAL)
    yield Figure("Contended bytes and I/O slowdown by policy", "policies", partial(draw_policies, of_usual))
    yield policy_table(results)
    yield _words(results)
    yield "## With errors"
    yield Table(("setting", "what it is"), [(name, doc) for name, (doc, _) in SETTINGS.items()])
    draw = partial(draw_settings, compared(results, RIVAL), list(SETTINGS), _SHOWN)
    yield Figure("Contended bytes by setting", "settings", draw)
    yield setting_table(results)
    yield "The advice does not know of the errors: it counts with the same drift and the same doubt in all settings."
    yield "## How the mixes are drawn"
    yield from _model()


def _in_short(results: Results) -> str:
    found, beside, later = (_by_policy(results, rival, USUAL) for rival in (RIVAL, STRONGER_RIVAL, _WAITING))
    count = results.params.seed_count
    return (
        "In the usual setting, advice with delays has fewer contended bytes than the partition with the least load in "
        f"{_told(found[_ADVISED], count)}. Where no start may wait for longer than {SHORT_DELAY_S / 60:.0f} min, in "
        f"{_told(found[_ADVISED_SHORT], count)}. Where none may wait at all, in {_told(found['contention'], count)}: "
        "as many for the most part because both take the same partition. Waiting is worth something by itself, as "
        "some of those who run end meanwhile and nobody begins: the least loaded partition, begun as late as advice "
        f"begins, has fewer than at once in {_told(found[_WAITING], count)}; against that one, advice has fewer in "
        f"{_told(later[_ADVISED], count)}. Against the least mean load of the "
        f"signatures, which needs signatures as well, advice has fewer in {beside[_ADVISED]['wins']} mixes with delays "
        f"and in {beside['contention']['wins']} without. {found[_ADVISED]['contended_count']} of the mixes have "
        "contention at all at one of the places taken."
    )


def _told(row: dict[str, float], count: int) -> str:
    """Return in how many of so many mixes a policy has fewer contended bytes, and how it is in the others."""
    return (
        f"{row['wins']} of {count} mixes (as many in {row['ties']}, more in {row['losses']}; {row['to_rival']:.2f} "
        "times as many in all)"
    )


def _words(results: Results) -> str:
    return (
        f"Means over {results.params.seed_count} mixes. Contended bytes: those that were not moved by when they would "
        "have been alone, of all transfers on the partition, less what is so without the new application; as a share "
        "of what the new one moves. `/ least loaded`: their sum over that of least loaded. Fewer, same, more: mixes "
        "in which they are fewer than, as many as, and more than those of least loaded. I/O slowdown: the time that "
        "its transfers take over what they take alone; others': their time for I/O on the partition over that "
        "without the new one. In the figure, boxes hold half of the mixes, whiskers 90 %; the dot is the mean."
    )


def _model() -> Iterator[str]:
    _, usual = SETTINGS[USUAL]
    of, advice = usual.applications, ADVICE
    yield (
        "A mix has 3 to 8 partitions of the same capacity, 2 to 4 GB/s. Each gets applications until they come to "
        f"{of.load_ratio[0]:.0%} to {of.load_ratio[1]:.0%} of it on average, two at least: all partitions are in use, "
        f"as in section 6.4. An application computes, then does a burst, again and again: every {of.period_s[0]:g} to "
        f"{of.period_s[1]:g} s, for {of.busy_ratios[0]:.0%} to {of.busy_ratios[1]:.0%} of that alone, at a peak of "
        f"{of.peak_bytes_per_s[0] / 1e9:g} to {of.peak_bytes_per_s[1] / 1e9:g} GB/s, for {of.run_s[0]:g} to "
        f"{of.run_s[1]:g} s in all. When the new one comes, which is drawn alike, each has run for 0 to 90 % of its "
        "time; nobody begins after it. All is drawn evenly, the period evenly in its logarithm. Runs differ from "
        f"their signature as those of the synthetic site do: {usual.drift_ratio:.1%} for all computing of a run, "
        "three tenths of that for each wait, twice that for the speed of each burst."
    )
    yield (
        "The judge is `transforms/synthetic/contention.py`: transfers share a partition's capacity max-min fairly, and "
        "one that takes longer delays all that its job does afterwards. What is judged are the transfers that begin "
        "from the placement on until the new one ought to be done with the longest delay and a quarter more time. The "
        "past is simulated too: it tells the present load, when bursts began, and the load that no signature "
        "explains, which is the background."
    )
    yield (
        f"Advice goes by defaults, on a grid of {GRID_S:g} s; delays are {advice.delay_step_s:g} s apart (to whole "
        f"steps), up to {advice.most_delay_s / 60:.0f} min, and cost nothing. Its model is simpler than the judge's: "
        "those who run make each other late, in proportion to what they ask for; that the new one makes itself and "
        f"them late has no consequences. What it counts with, a drift of {advice.drift_ratio:.0%} and a doubt of "
        f"{advice.start_error_s:g} s, was chosen on other mixes than these. There, expectations over sampled phases "
        "chose better than the mean load does, which has no peaks left."
    )
    yield (
        "On other mixes it was tried, too, to simulate every choice with all its consequences for the same sampled "
        "phases, delays up to 10 min. It won no more mixes (92 of 95 both), with 0.30 instead of 0.33 times the "
        "contended bytes of least loaded, and told no better what comes of a place and delay: its correlation with "
        "the judge's was 0.90 both with and without, and even the judge's own model, fed with what advice knows, came "
        "to 0.92 only. The rest is luck: how runs will go that nobody knows. What helps is to wait for "
        "longer: there are more delays to choose from, and fewer that still run. "
        f"The oracle's delays are {ORACLE_STEP_S:g} s apart; it stands in the usual setting alone."
    )
