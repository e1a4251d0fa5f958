"""Which planned trials this machine has no memory for.

What a trial needs is counted in ``sizing``. A model that cannot be counted is not left out here:
its trial says itself what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from epochcost.errors import EpochcostError
from epochcost.execute.size_cache import Question, size_once
from epochcost.measure.environment import shown_gpus
from epochcost.measure.memory import memory_limit_bytes
from epochcost.plan.make import Plan, leave_out_oversized
from epochcost.plan.trial import Trial
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.study import Mode, Precision, Provider

# Of what the work needs in fp32: its own numbers, and beside them those of the fp32 graph with
# which every other precision is compared.
_TIMES_FP32: Mapping[Precision, float] = MappingProxyType(
    {"fp32": 1, "tf32": 2, "fp16": 1.5, "bf16": 1.5, "int8": 1.25}
)


def room_bytes(devices: Iterable[int] = (0,)) -> dict[Provider, int]:
    """The memory that a trial may take of this machine, by provider; no entry: not known.

    A GPU's is that of the smallest of ``devices``.
    """
    room: dict[Provider, int] = {"cpu": memory_limit_bytes()}
    known = dict(enumerate(gpu.memory_bytes for gpu in shown_gpus()))
    sizes = [size for device in devices if (size := known.get(device)) is not None]
    if sizes:
        room["cuda"] = min(sizes)
    return room


def with_room(catalogue: Catalogue, plan: Plan) -> Plan:
    """The plan without the trials that need more memory than there is."""
    room = room_bytes({trial.session.device for trial in plan.trials if trial.provider == "cuda"})
    return leave_out_oversized(plan, dict(_needed_bytes(catalogue, plan.trials, room)), room)


def _needed_bytes(
    catalogue: Catalogue, trials: Sequence[Trial], room: Mapping[Provider, int]
) -> Iterator[tuple[str, int]]:
    """By trial's id, of each sweep; where the largest batch fits, the others are not counted."""
    ordered = sorted(
        trials, key=lambda trial: (*_work(trial), trial.batch_size, _TIMES_FP32[trial.precision])
    )
    for (model, mode, provider), swept in groupby(ordered, key=_work):
        sweep = list(swept)
        counted = _memory_bytes(catalogue, model, mode, provider, sweep[-1:])
        if any(needed > room.get(provider, needed) for needed in counted.values()):
            counted = _memory_bytes(catalogue, model, mode, provider, sweep)
        yield from counted.items()


def _work(trial: Trial) -> tuple[str, Mode, Provider]:
    return trial.model, trial.mode, trial.provider


def _memory_bytes(
    catalogue: Catalogue, name: str, mode: Mode, provider: Provider, trials: Sequence[Trial]
) -> dict[str, int]:
    model = catalogue.model(name)
    wanted = {mode: {trial.batch_size for trial in trials}}
    try:
        size = size_once(Question(model, catalogue.graph_path(model), wanted, provider))
    except EpochcostError:
        return {}
    found = {trial: size.footprint(mode, trial.batch_size) for trial in trials}
    return {
        trial.id: math.ceil(footprint.memory_bytes(provider) * _TIMES_FP32[trial.precision])
        for trial, footprint in found.items()
        if footprint is not None
    }
