"""Rates of models that were measured on a GPU machine, which sharpen predictions for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from epochcost.analysis.arithmetic import arithmetic_of_model, is_whole_pass
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.representatives import is_of_steps, representatives
from epochcost.graphs.profile import Profile
from epochcost.predict.design import Placed
from epochcost.predict.forecast import Question, as_rate, has_kin
from epochcost.specs.device import Device
from epochcost.specs.hardware import Hardware
from epochcost.specs.study import Mode

_Timed = tuple[str, Mode, int, Profile, float]


def measured_rates(
    inputs: Inputs, hardware: Hardware, device: Device, software: str, known: Sequence[Placed]
) -> Iterator[Placed]:
    """Rates of plain trials on one ``device`` of a machine under ``software``, if they have kin.

    Trials on a machine that contradicts its spec are left out. Those on CPUs are ``known`` by
    ``cpus``.
    """
    if hardware.device != "cuda":
        return
    for name, mode, batch, profile, seconds in _trials(inputs, hardware, known):
        work = Question(
            model=name,
            profile=profile,
            mode=mode,
            precision="fp32",
            batch=batch,
            software=software,
            device=device,
            count=1,
        )
        yield as_rate(work, batch / seconds)


def _trials(inputs: Inputs, hardware: Hardware, known: Sequence[Placed]) -> Iterator[_Timed]:
    """The medians of plain trials; none of steps that do not compute all passes."""
    own = [
        one
        for one in inputs.stored
        if (one.result.hardware, one.result.trial.provider) == (hardware.id, hardware.device)
        and is_of_steps(one.result)
        and not (one.result.trial.variant or one.result.contradictions)
        and one.result.trial.session.threads == 0
    ]
    for one in representatives(own):
        trial = one.result.trial
        model = inputs.catalogue.models[trial.model]
        counted = arithmetic_of_model(inputs.catalogue, model, inputs.cache)
        profile = counted.profile if counted else None
        whole = is_whole_pass(model, trial.mode)
        if profile and whole and not profile.recurrent_flops and has_kin(profile, known):
            seconds = median(one.result.measurement.samples_seconds)
            yield model.id, trial.mode, trial.batch_size, profile, seconds
