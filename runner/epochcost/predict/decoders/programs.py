"""Fit the parameters of the formula in ``law``, called efficiencies, for each program.

A program is an edition (a version as one source names it) of a software package on one maker's
accelerators, or on CPUs. The fit to all software is the prior for each package, whose fit is the
prior for its programs. A program with very few published times has no fit of its own.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from epochcost.predict.decoders.chips import NVIDIA
from epochcost.predict.decoders.law import Efficiencies, Law
from epochcost.predict.decoders.rows import ServingQuestion
from epochcost.predict.departures import fitted
from epochcost.predict.process import Vector, numbered
from epochcost.statistics import group_by

# Standard deviation of a group's efficiencies from those of the next larger group.
_SPREAD_OF_PROGRAM = 0.7
# A smaller group takes the efficiencies of the next larger one.
_FEWEST_TO_LEARN = 8
_WEIGHTS = Efficiencies._fields.index("weights")
# Their kernels unpack quantised weights while they read them, so other software says nothing about
# the cost. vLLM has done so since 2024 (IST-DASLab/marlin).
_UNPACKS_WHILE_READING = ("vLLM", "TensorRT-LLM", "LMDeploy", "SGLang")


def _group_names(question: ServingQuestion) -> tuple[str, ...]:
    """Names of a question's fits, from its software's (the widest) to its program's."""
    software, edition, chip = question.software, question.edition, question.chip
    if chip.cores or chip.maker == NVIDIA:
        return software, f"{software}: {edition}"
    elsewhere = f"{software} on {chip.maker}"
    return software, elsewhere, f"{elsewhere}: {edition}"


class Programs(NamedTuple):
    """Fitted parameters of the formula in ``law``, as logarithms in the order of `Efficiencies`.

    ``pooled`` is the fit to all software. ``named`` has the fits of packages ("vLLM"), of packages
    on other makers' accelerators than NVIDIA's ("vLLM on AMD"), and of editions ("vLLM: EDITION").
    """

    pooled: tuple[float, ...]
    named: dict[str, tuple[float, ...]]

    def law(self, questions: Sequence[ServingQuestion]) -> Vector:
        """Predict log(seconds) [n] by the fit of the edition, else of the software, else of all."""
        result = np.empty(len(questions))
        places = group_by(range(len(questions)), lambda at: _group_names(questions[at]))
        for groups, members in places.items():
            fits = [self.named[name] for name in groups if name in self.named]
            law = Law([questions[at] for at in members])
            result[list(members)] = law(np.array(fits[-1] if fits else self.pooled))
        return result


def fit_programs(
    questions: Sequence[ServingQuestion], seconds: Vector, start: Efficiencies, spread: Efficiencies
) -> Programs:
    """Fit efficiencies of all software together, of each software package and of each program.

    ``seconds`` [n] are logarithms of the measured times. ``start`` has the efficiencies expected
    before the fit, ``spread`` the standard deviations of their logarithms.
    """
    fit = partial(_fit_efficiencies, questions, seconds)
    pooled, deviations = np.log(start), np.array(spread)
    groups_of = [_group_names(question) for question in questions]
    at_home = [at for at, groups in enumerate(groups_of) if len(groups) == 2]
    if len(at_home) >= _FEWEST_TO_LEARN:
        pooled = fit(at_home, [question.software for question in questions], pooled, deviations)
    places: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for at, groups in enumerate(groups_of):
        # Rows on other makers' chips do not count in the software's group on NVIDIA's.
        for length in range(1 if len(groups) == 2 else 2, len(groups) + 1):
            places[groups[:length]].append(at)
    named: dict[str, Vector] = {}
    chips = [question.chip.kind for question in questions]
    for groups in sorted(places, key=len):
        near = next((named[name] for name in groups[-2::-1] if name in named), pooled).copy()
        if groups[-1] in _UNPACKS_WHILE_READING:
            near[_WEIGHTS] = math.log(start.weights)
        members = places[groups]
        if members == places.get(groups[:-1]) or len(members) < _FEWEST_TO_LEARN:
            continue
        named[groups[-1]] = fit(members, chips, near, _SPREAD_OF_PROGRAM * deviations)
    each = {name: tuple(values.tolist()) for name, values in named.items()}
    return Programs(tuple(pooled.tolist()), each)


def _fit_efficiencies(
    questions: Sequence[ServingQuestion],
    seconds: Vector,
    indices: list[int],
    groups: Sequence[str],
    start: Vector,
    deviations: Vector,
) -> Vector:
    """Fit log efficiencies to the times at ``indices``; each time in a group of k weighs 1 / √k."""
    members = numbered([groups[at] for at in indices])
    weights = np.bincount(members)[members] ** -0.5
    law = Law([questions[at] for at in indices])
    return fitted(law, seconds[indices], start, deviations, weights=weights / weights.mean())
