"""Fit the law's efficiencies for each program: an edition of a software for one maker's chips.

The fit is hierarchical. All rows are fitted together. Each software is then fitted near that fit,
its rows on chips of other makers near its fit on NVIDIA's chips, and each edition near its
software. A program with few rows stays near its group, and a program without rows equals its group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from epochcost.predict.decoders.chips import NVIDIA
from epochcost.predict.decoders.law import Efficiencies, Law, Step
from epochcost.predict.departures import fitted, numbered
from epochcost.predict.process import Vector

# Standard deviation of a group's efficiencies from those of the next larger group.
_SPREAD_OF_PROGRAM = 0.7
# A smaller group takes the efficiencies of the next larger one.
_FEWEST_TO_LEARN = 8


class Program(NamedTuple):
    """An edition of a software for the chips of one maker, for which its kernels were written."""

    software: str
    maker: str
    edition: str

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups that the program belongs to, the largest first."""
        at_home = self.software
        if self.maker in ("", NVIDIA):
            return at_home, f"{at_home}: {self.edition}"
        elsewhere = f"{at_home} on {self.maker}"
        return at_home, elsewhere, f"{elsewhere}: {self.edition}"


class Programs(NamedTuple):
    """Logarithms of efficiencies: fitted to all rows together, and to each group by its name."""

    pooled: tuple[float, ...]
    named: dict[str, tuple[float, ...]]

    def law(self, steps: Sequence[Step[float]], programs: Sequence[Program]) -> Vector:
        """Logarithms of the seconds that the law predicts with the efficiencies of each program."""
        result = np.empty(len(steps))
        places: dict[Program, list[int]] = defaultdict(list)
        for at, program in enumerate(programs):
            places[program].append(at)
        for program, members in places.items():
            fits = [self.named[name] for name in program.groups if name in self.named]
            law = Law([steps[i] for i in members])
            result[members] = law(np.array(fits[-1] if fits else self.pooled))
        return result


class Rows(NamedTuple):
    """Published steps [n]: inputs of the law, logarithms of seconds, programs and chips."""

    steps: Sequence[Step[float]]
    seconds: Vector
    programs: Sequence[Program]
    chips: Sequence[str]


def fit_programs(rows: Rows, start: Efficiencies, spread: Efficiencies) -> Programs:
    """Fit the efficiencies of all programs to published steps.

    The prior of each efficiency has its middle at ``start``; ``spread`` is the standard deviation
    of the efficiency's logarithm.
    """
    pooled, deviations = np.log(start), np.array(spread)
    at_home = [at for at, program in enumerate(rows.programs) if len(program.groups) == 2]
    if len(at_home) >= _FEWEST_TO_LEARN:
        software = [program.software for program in rows.programs]
        pooled = _fit(rows, at_home, software, pooled, deviations)
    places: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for at, program in enumerate(rows.programs):
        # Rows on other makers' chips do not count in the software's group on NVIDIA's.
        for length in range(1 if len(program.groups) == 2 else 2, len(program.groups) + 1):
            places[program.groups[:length]].append(at)
    named: dict[str, Vector] = {}
    for groups in sorted(places, key=len):
        near = next((named[name] for name in groups[-2::-1] if name in named), pooled)
        members = places[groups]
        if members == places.get(groups[:-1]) or len(members) < _FEWEST_TO_LEARN:
            continue
        named[groups[-1]] = _fit(rows, members, rows.chips, near, _SPREAD_OF_PROGRAM * deviations)
    each = {name: tuple(values.tolist()) for name, values in named.items()}
    return Programs(tuple(pooled.tolist()), each)


def _fit(
    rows: Rows, at: list[int], groups: Sequence[str], start: Vector, deviations: Vector
) -> Vector:
    """Fit efficiencies to the rows with indices ``at``; n rows of one group together weigh √n."""
    members = numbered([groups[i] for i in at])
    weights = np.bincount(members)[members] ** -0.5
    law = Law([rows.steps[i] for i in at])
    return fitted(law, rows.seconds[at], start, deviations, weights=weights / weights.mean())
