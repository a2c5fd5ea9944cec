"""Naive implementation of `iosig.transforms.synthetic.contention`: small time steps, and water-filled rates."""

from __future__ import annotations

from collections.abc import Sequence

from iosig.transforms.synthetic.contention import Chains, SharedBandwidth


def fair_rates(peaks: Sequence[float], weights: Sequence[float], pipe: SharedBandwidth) -> list[float]:
    """Raise a water level until the capacity is used or every transfer has its limit."""
    total = sum(weights)
    limits = [p / (1 + pipe.seek_loss_ratio * (total - w)) for p, w in zip(peaks, weights, strict=True)]
    low, high = 0.0, max((limit / w for limit, w in zip(limits, weights, strict=True)), default=0.0)
    for _ in range(60):
        level = (low + high) / 2
        used = sum(min(limit, w * level) for limit, w in zip(limits, weights, strict=True))
        low, high = (level, high) if used <= pipe.capacity_bytes_per_s else (low, level)
    return [min(limit, w * high) for limit, w in zip(limits, weights, strict=True)]


def end_s(chains: Chains, pipe: SharedBandwidth, until_s: float, step_s: float) -> list[list[float | None]]:
    """Ends of all transfers of each chain, found by small time steps."""
    bounds = list(zip(chains.offsets[:-1], chains.offsets[1:], strict=True))
    position = [int(low) for low, _ in bounds]
    ready = [
        float(start + (chains.wait_s[low] if low < high else 0.0))
        for start, (low, high) in zip(chains.start_s, bounds, strict=True)
    ]
    remaining = [float(volume) for volume in chains.volume_bytes]
    ended: list[list[float | None]] = [[None] * int(high - low) for low, high in bounds]
    for tick in range(int(until_s / step_s)):
        now = tick * step_s
        active = [i for i, (_, high) in enumerate(bounds) if position[i] < high and ready[i] <= now]
        steps = [position[i] for i in active]
        rates = fair_rates(
            [float(chains.peak_bytes_per_s[s]) for s in steps], [float(chains.weight[s]) for s in steps], pipe
        )
        for i, step, rate in zip(active, steps, rates, strict=True):
            remaining[step] -= rate * step_s
            if remaining[step] <= 0:
                ended[i][step - int(bounds[i][0])] = now + step_s
                position[i] += 1
                if position[i] < bounds[i][1]:
                    ready[i] = now + step_s + float(chains.wait_s[position[i]])
    return ended
