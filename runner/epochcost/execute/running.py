"""From a trial and the files that were written for it to the job of a worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from epochcost.execute.runtimes import interpreter
from epochcost.measure.job import Carried, Evaluation, Job, Reference, Sampling, Serving
from epochcost.measure.pinning import pinning_to
from epochcost.plan.trial import Trial
from epochcost.results.pinning import Pinning


@dataclass(frozen=True)
class Built:
    """What a trial executes, as files; each field is the ``Job``'s of that name."""

    graph: Path
    batches: Path
    reference: Reference | None
    carried: tuple[Carried, ...] = ()
    outputs: tuple[str, ...] = ()
    initial: Path | None = None
    scalars: Mapping[str, float] = field(default_factory=dict)
    series: Path | None = None
    evaluation: Evaluation | None = None
    serving: Serving | None = None


def job_of(trial: Trial, built: Built) -> Job:
    """The job of a trial.

    Raises CapabilityError where a trial has to be pinned and cannot be, or its runtime is not
    prepared.
    """
    return Job(
        mode=trial.mode,
        provider=trial.provider,
        runtime=trial.runtime,
        python=interpreter(trial),
        session=trial.session,
        pinning=pinning(trial),
        input_copy=trial.input_copy,
        seed=trial.seed,
        precision=trial.precision,
        sampling=Sampling(
            relative_half_width=float(trial.relative_half_width),
            minimum_samples=trial.minimum_samples,
            budget_seconds=float(trial.budget_seconds),
        ),
        graph=built.graph,
        batches=built.batches,
        reference=built.reference,
        carried=built.carried,
        outputs=built.outputs,
        initial=built.initial,
        scalars=dict(built.scalars),
        series=built.series,
        evaluation=built.evaluation,
        serving=built.serving,
    )


def pinning(trial: Trial) -> Pinning | None:
    """The CPUs of its worker, None for all; raises CapabilityError as ``job_of``."""
    return None if trial.vcpus is None else pinning_to(trial.vcpus, trial.session.threads)
