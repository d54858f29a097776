"""How many times a peer's figure Sealane's is, by rounds that were measured side by side and by the medians."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.figures import Figure
from bench.records import Stated


@dataclass(frozen=True, slots=True)
class Ratio:
    """More than 1 where Sealane is better: faster, or with less of what should be little."""

    sealane: Figure
    peer: Figure
    of_medians: float
    by_rounds: tuple[float, ...]
    """Empty where the two were not measured in one run: their rounds are then no pairs."""

    @property
    def median_by_rounds(self) -> float | None:
        return statistics.median(self.by_rounds) if self.by_rounds else None

    @property
    def value(self) -> float:
        """What to judge by: the median over rounds, or what the medians say where there are no pairs."""
        by_rounds = self.median_by_rounds
        return self.of_medians if by_rounds is None else by_rounds


def ratio(sealane: Figure, peer: Figure) -> Ratio:
    """Of two figures of the same work and part."""
    assert (sealane.work, sealane.part) == (peer.work, peer.part), "these are not comparable"

    def times(ours: float, theirs: float) -> float:
        return theirs / ours if sealane.less_is_better else ours / theirs

    are_pairs = sealane.run == peer.run and len(sealane.rounds) == len(peer.rounds)
    by_rounds = tuple(map(times, sealane.rounds, peer.rounds)) if are_pairs else ()
    return Ratio(sealane, peer, times(sealane.value, peer.value), by_rounds)


def best_durable(figures: Iterable[Figure], systems: Sequence[Stated]) -> Figure | None:
    """Of one work and part, the best figure of a peer whose messages are on disk."""
    durable = {system.name for system in systems if system.durable}
    fit = [figure for figure in figures if figure.system in durable]
    if not fit:
        return None
    return (min if fit[0].less_is_better else max)(fit, key=lambda figure: figure.value)
