"""Match patterns between two detections, so that a pattern keeps its id while the window of days moves on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from iosig.transforms.arrays import Reals


@dataclass(frozen=True, slots=True)
class PatternSummary:
    """Features that identify a pattern: starts of its k appearances [s since 1970], typical volume and duration."""

    start_s: Reals
    volume_bytes: float
    duration_s: float


#: maximum distance between two starts of the same appearance [s]; no pattern appears twice within two minutes
_TOLERANCE_S = 60.0
#: maximum differences of log volume and log duration between detections of one pattern
_MAX_LOG_DIFFERENCES = (0.2, 0.7)
#: minimum fraction of common appearances within the common time
_MIN_COMMON_RATIO = 0.5


def match_patterns(current: Sequence[PatternSummary], previous: Sequence[PatternSummary]) -> list[int]:
    """Match patterns one to one, greedily by similarity.

    Parameters
    ----------
    current, previous : sequence of PatternSummary
        Patterns of both detections.

    Returns
    -------
    list of int
        Index of the previous pattern for each current one; -1 for a new pattern.

    Notes
    -----
    If the times overlap, the fraction of common appearances decides, otherwise the similarity of volume and duration.

    """
    similarity = np.array([[_similarity(new, old) for old in previous] for new in current])
    similarity = similarity.reshape(len(current), len(previous))
    matches = np.full(len(current), -1)
    while similarity.size and similarity.max() > 0:
        new, old = np.unravel_index(int(similarity.argmax()), similarity.shape)
        matches[new] = old
        similarity[new], similarity[:, old] = 0.0, 0.0
    indices: list[int] = matches.tolist()
    return indices


def _similarity(new: PatternSummary, old: PatternSummary) -> float:
    """Rate the similarity: 1 to 2 for common appearances, 0 to 1 for similar volume and duration, otherwise 0."""
    low = max(new.start_s[0], old.start_s[0]) - _TOLERANCE_S
    high = min(new.start_s[-1], old.start_s[-1]) + _TOLERANCE_S
    new_s, old_s = (times[(times >= low) & (times <= high)] for times in (new.start_s, old.start_s))
    if len(new_s) and len(old_s):
        count = _count_common(new_s, old_s)
        ratio = count / max(len(new_s), len(old_s))
        # among equal ratios, prefer more common appearances
        return 1.0 + ratio * count / (count + 1.0) if ratio >= _MIN_COMMON_RATIO else 0.0
    differences = [
        abs(float(np.log(a / b))) / limit
        for a, b, limit in (
            (new.volume_bytes, old.volume_bytes, _MAX_LOG_DIFFERENCES[0]),
            (new.duration_s, old.duration_s, _MAX_LOG_DIFFERENCES[1]),
        )
    ]
    return max(0.0, 1.0 - max(differences))


def _count_common(new_s: Reals, old_s: Reals) -> int:
    """Count new times with an old time within the tolerance."""
    padded = np.concatenate([[-np.inf], old_s, [np.inf]])
    after = np.searchsorted(padded, new_s)
    return int((np.minimum(padded[after] - new_s, new_s - padded[after - 1]) <= _TOLERANCE_S).sum())
