"""Fit efficiencies of programs: a software on the chips of one maker, in one edition.

The fit is hierarchical. All rows are fitted together, then each software near that fit, then its
rows on chips of other makers near those on NVIDIA's, and each edition near its software. A program
with few rows stays near its group, and a program without rows equals it.
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
    """A software in one edition on one maker's chips, which have kernels of their own."""

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
    """Logarithms of efficiencies: of all rows together, and of each group by its name."""

    pooled: tuple[float, ...]
    named: dict[str, tuple[float, ...]]

    def law(self, steps: Sequence[Step[float]], programs: Sequence[Program]) -> Vector:
        """Logarithms of seconds of steps under the efficiencies of their programs."""
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
    """Timed steps [n] with the logarithms of their seconds, programs and chips."""

    steps: Sequence[Step[float]]
    seconds: Vector
    programs: Sequence[Program]
    chips: Sequence[str]


def fit_programs(rows: Rows, start: Efficiencies, spread: Efficiencies) -> Programs:
    """Fit efficiencies with priors at ``start``; ``spread`` is in deviations of logarithms."""
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
    """Efficiencies of the rows at ``at``; a group of n rows has the weight √n."""
    members = numbered([groups[i] for i in at])
    weights = np.bincount(members)[members] ** -0.5
    law = Law([rows.steps[i] for i in at])
    return fitted(law, rows.seconds[at], start, deviations, weights=weights / weights.mean())
