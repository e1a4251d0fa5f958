"""How a trial is run, whatever its work: the session, the CPUs, and when enough is measured."""

from __future__ import annotations

from typing import Any

from epochcost.execute.runtimes import interpreter
from epochcost.measure.job import Sampling, SessionSettings
from epochcost.measure.pinning import pinning_to
from epochcost.plan.trial import Trial
from epochcost.results.pinning import Pinning


def running(trial: Trial) -> dict[str, Any]:
    """What the trial says of its running, by the field names of a ``Job``.

    Raises CapabilityError where a trial has to be pinned and cannot be, or its runtime is not
    prepared.
    """
    return {
        "provider": trial.provider,
        "runtime": trial.runtime,
        "python": interpreter(trial),
        "session": _session(trial),
        "pinning": pinning(trial),
        "input_copy": trial.input_copy,
        "seed": trial.seed,
        "sampling": Sampling(
            relative_half_width=float(trial.relative_half_width),
            minimum_samples=trial.minimum_samples,
            budget_seconds=float(trial.budget_seconds),
        ),
    }


def pinning(trial: Trial) -> Pinning | None:
    """The CPUs of its worker, None for all; raises CapabilityError as ``running``."""
    return None if trial.vcpus is None else pinning_to(trial.vcpus, _threads(trial))


def _threads(trial: Trial) -> int:
    """As many as the CPUs it is pinned to, where it does not say."""
    return trial.threads or trial.vcpus or 0


def _session(trial: Trial) -> SessionSettings:
    return SessionSettings(
        threads=_threads(trial),
        graph_optimization=trial.graph_optimization,
        spinning=trial.spinning,
        denormals_as_zero=trial.denormals_as_zero,
        tf32=trial.precision == "tf32",
        cuda_graph=trial.cuda_graph,
        device=trial.device,
        device_memory_limit_bytes=trial.device_memory_limit_bytes,
    )
