"""Programs of others that did nearly what is asked: what "as published" means for a work.

A program is what one source ran of one model, in one framework, mode and precision. It is asked for
its rate on other devices, and with another graph that asks for nearly as much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epochcost.graphs.profile import Profile
from epochcost.predict.design import Placed, Precision, precision_of, work_features
from epochcost.predict.forecast import FARTHEST_KIN
from epochcost.predict.rates import Rate
from epochcost.specs.device import Device
from epochcost.specs.study import Mode

# Between logarithms of what graphs ask for: one network as two exporters write it.
_SAME = 0.1
_IMAGES = "image"
# Of equally near programs, the one in what most people train in.
_FRAMEWORKS = ("PyTorch", "TensorFlow", "MXNet")


@dataclass(frozen=True, slots=True)
class Program:
    """The nearest program of a work: ``rate`` is one of its rates.

    ``same`` are all rates of that work in this mode and precision, whoever ran it, the nearest
    program's first.
    """

    rate: Rate
    same: tuple[Placed, ...]

    @property
    def software(self) -> str:
        """The framework, and who published its rates."""
        return software_of(self.rate)

    def published_on(self, device: Device, count: int) -> Rate | None:
        """What somebody published of the work itself on so many of a device."""
        for one in self.same:
            if one.device.id == device.id and one.rate.count == count:
                return one.rate
        return None


def software_of(rate: Rate) -> str:
    """The framework of a rate, and who published it."""
    return f"{rate.software} ({rate.source})"


def nearest_program(
    task: str, profile: Profile, mode: Mode, precision: Precision, known: Sequence[Placed]
) -> Program | None:
    """The program whose graph asks for most nearly the same; None where none is kin.

    One of images for a work whose ``task`` has none only where no other is kin. Of several as near,
    one in PyTorch; then the one with the most rates. A recurrent work has recurrent kin only.
    """
    own, recurrent = work_features(profile), profile.recurrent_flops > 0
    distances = {
        id(one): float(np.linalg.norm(own - work_features(one.profile)))
        for one in known
        if one.profile is not None
        and (one.profile.recurrent_flops > 0) == recurrent
        and (one.rate.mode, precision_of(one.rate.precision)) == (mode, precision)
    }
    near = [one for one in known if distances.get(id(one), FARTHEST_KIN) < FARTHEST_KIN]
    if not near:
        return None
    rates = Counter(one.rate.setting for one in near)

    def order(one: Placed) -> tuple[bool, float, int, int]:
        framework = one.rate.software
        stranger = _IMAGES in one.rate.task and _IMAGES not in task
        rank = _FRAMEWORKS.index(framework) if framework in _FRAMEWORKS else len(_FRAMEWORKS)
        return stranger, max(distances[id(one)], _SAME), rank, -rates[one.rate.setting]

    ordered = sorted(near, key=order)
    same = tuple(one for one in ordered if distances[id(one)] <= _SAME)
    return Program(ordered[0].rate, same)
