"""What our runtime was measured to do on a machine, as rates that predictions learn from.

Its anchors, and plain trials of models: others are then predicted from them. How they were measured
is left to ``results``, what follows from them to ``predict``.
"""

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

# An anchor is no model: what products and copies alone reach says nothing of models.
_NEAR_KIN = 1.5
_Timed = tuple[str, Mode, int, Profile, float]


def measured_rates(
    inputs: Inputs, hardware: Hardware, device: Device, software: str, known: Sequence[Placed]
) -> Iterator[Placed]:
    """Rates of works on one ``device`` of a machine under ``software``, where they have kin.

    What was measured as is, on a machine that contradicts its spec, is left out. Trials on CPUs
    are ``known`` by ``cpus``.
    """
    timed = [*_anchors(inputs, hardware, known)]
    if hardware.device == "cuda":
        timed += _trials(inputs, hardware, known)
    for name, mode, batch, profile, seconds in timed:
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


def _anchors(inputs: Inputs, hardware: Hardware, known: Sequence[Placed]) -> Iterator[_Timed]:
    for one in (stored.ceilings for stored in inputs.ceilings):
        if (one.hardware, one.provider) == (hardware.id, hardware.device) and (
            not one.contradictions
        ):
            for anchor in one.anchors:
                if has_kin(anchor.profile, known, _NEAR_KIN):
                    seconds = median(anchor.step_seconds)
                    name = f"anchor {anchor.work}"
                    yield name, anchor.mode, anchor.batch_size, anchor.profile, seconds


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
