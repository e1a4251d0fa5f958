"""Find the model with published rates that is most similar to a workload, and these rates."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from epochcost.graphs.profile import Profile
from epochcost.predict.design import Placed, Precision, graph_distance, precision_of
from epochcost.predict.forecast import FARTHEST_KIN
from epochcost.predict.learnt import FRAMEWORKS
from epochcost.predict.rates import Rate
from epochcost.specs.hardware import Device
from epochcost.specs.study import Mode

# Distance within which two graphs are one network, written by two exporters.
_SAME = 0.1
_IMAGES = "image"
# In the names that NVIDIA gives to image classifiers, whose tasks do not mention images.
_IMAGE_CLASSIFIERS = "Classification ConvNets", "Classification RN50"


@dataclass(frozen=True, slots=True)
class Program:
    """The published program (a model as one source ran it in a framework) closest to a workload.

    ``same`` has the rates of all programs with about the workload's operations and bytes, best
    first. ``rate`` is the first of them; if ``same`` is empty, that of a less similar program.
    """

    rate: Rate
    same: tuple[Placed, ...]

    def published_on(self, device: Device, count: int, batch: float) -> Rate | None:
        """The rate on ``count`` devices at the most similar batch size, or None.

        ``batch`` is that of one device. Rates at less than half of it do not count. Of the other
        rates in ``same``, only those of the first one's program are candidates.
        """
        rates = [
            row.rate
            for row in self.same
            if (row.device.id, row.rate.count) == (device.id, count)
            if not row.rate.batch or row.rate.batch >= batch / 2
        ]
        first = [rate for rate in rates if rate.setting == rates[0].setting]
        return min(first, key=lambda rate: _batch_distance(rate, batch), default=None)


def _batch_distance(rate: Rate, batch: float) -> float:
    """Distance of the logarithms of two batch sizes; infinite if the rate's is unknown."""
    return abs(math.log(rate.batch / batch)) if rate.batch else math.inf


def software_of(rate: Rate) -> str:
    """The framework of a published rate, with its source in brackets."""
    return f"{rate.software} ({rate.source})"


def nearest_program(
    task: str, profile: Profile, published: Sequence[Placed], mode: Mode, precision: Precision
) -> Program | None:
    """Find the most similar published program in a mode and precision; None if none is similar.

    Programs are compared by operations and bytes, recurrent networks only with each other. If
    ``task`` does not mention images, programs for images come last. Among equally similar programs,
    the first of ``FRAMEWORKS`` wins, then the program with rates on most devices.
    """
    distances = {
        id(row): graph_distance(profile, row.profile)
        for row in published
        if row.profile is not None
        and (row.rate.mode, precision_of(row.rate.precision)) == (mode, precision)
    }
    near = [row for row in published if distances.get(id(row), FARTHEST_KIN) < FARTHEST_KIN]
    if not near:
        return None
    devices = Counter(setting for setting, _ in {(row.rate.setting, row.device.id) for row in near})

    def is_stranger(row: Placed) -> bool:
        of_images = any(name in row.rate.model for name in _IMAGE_CLASSIFIERS)
        return (of_images or _IMAGES in row.rate.task) and _IMAGES not in task

    def order(row: Placed) -> tuple[bool, float, int, int]:
        framework = row.rate.software
        rank = FRAMEWORKS.index(framework) if framework in FRAMEWORKS else len(FRAMEWORKS)
        return is_stranger(row), max(distances[id(row)], _SAME), rank, -devices[row.rate.setting]

    ordered = sorted(near, key=order)
    same = tuple(row for row in ordered if distances[id(row)] <= _SAME and not is_stranger(row))
    return Program(ordered[0].rate, same)
