"""Efficiencies of programs: a software on the chips of one maker, fitted to published rows.

All programs are fitted together first, each one around that, and what runs on the chips of other
makers around what the same software reaches on NVIDIA's. So a program with few rows stays near the
others, and one with none is what they are on average.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from epochcost.predict.decoders.chips import NVIDIA, Chip
from epochcost.predict.decoders.law import Efficiencies, Law, Step
from epochcost.predict.departures import fitted, numbered
from epochcost.predict.process import Labels, Vector

_ELSEWHERE = " on "
# Of one program, the spread around what all reach.
_SPREAD_OF_PROGRAM = 0.7
_FEWEST_TO_LEARN = 2


def program_of(software: str, chip: Chip) -> str:
    """A software on a maker's chips, for which it has kernels of its own."""
    at_home = chip.maker in ("", NVIDIA)
    return software if at_home else f"{software}{_ELSEWHERE}{chip.maker}"


class Programs(NamedTuple):
    """Logarithms of efficiencies: of all programs together, and of each by its name."""

    pooled: tuple[float, ...]
    named: dict[str, tuple[float, ...]]

    def law(self, steps: Sequence[Step[float]], programs: Sequence[str]) -> Vector:
        """Logarithms of seconds of steps under the efficiencies of their programs."""
        result = np.empty(len(steps))
        names = np.array(programs)
        for name in dict.fromkeys(programs):
            at = np.flatnonzero(names == name).tolist()
            software = self.named.get(name.split(_ELSEWHERE)[0], self.pooled)
            law = Law([steps[i] for i in at])
            result[at] = law(np.array(self.named.get(name, software)))
        return result


class Rows(NamedTuple):
    """Steps that were timed [n], with the program and the chip of each."""

    steps: Sequence[Step[float]]
    seconds: Vector
    programs: Sequence[str]
    chips: Sequence[str]


def fit_programs(rows: Rows, start: Efficiencies, spread: Efficiencies) -> Programs:
    """Fit efficiencies, expected near ``start`` within ``spread``, deviations of logarithms."""
    pooled, deviations = np.log(start), np.array(spread)
    names = np.array(rows.programs, dtype=np.str_)
    elsewhere = np.array([_ELSEWHERE in name for name in rows.programs], dtype=np.bool_)
    at_home = np.flatnonzero(~elsewhere)
    if len(at_home) >= _FEWEST_TO_LEARN:
        pooled = _fit(rows, at_home, rows.programs, pooled, deviations)
    named: dict[str, Vector] = {}
    for name in sorted(set(rows.programs), key=lambda name: (_ELSEWHERE in name, name)):
        near = named.get(name.split(_ELSEWHERE)[0], pooled)
        at = np.flatnonzero(names == name)
        named[name] = _fit(rows, at, rows.chips, near, _SPREAD_OF_PROGRAM * deviations)
    each = {name: tuple(values.tolist()) for name, values in named.items()}
    return Programs(tuple(pooled.tolist()), each)


def _fit(
    rows: Rows, at: Labels, groups: Sequence[Hashable], start: Vector, deviations: Vector
) -> Vector:
    """Efficiencies of some rows; a group of n rows counts as much as the root of n."""
    places = at.tolist()
    members = numbered([groups[i] for i in places])
    weights = np.bincount(members)[members] ** -0.5
    law = Law([rows.steps[i] for i in places])
    return fitted(law, rows.seconds[at], start, deviations, weights=weights / weights.mean())
