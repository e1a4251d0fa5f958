"""Check a trial's outputs outside timed steps: agreement with fp32, finiteness, held-out loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from epochcost.measure.job import Job, JobError, Reference
from epochcost.measure.session import open_session
from epochcost.measure.stepping import (
    Array,
    first_values,
    initial_parameters,
    job_stepper,
    load_arrays,
    tensor_type,
)
from epochcost.results.records import Agreement, OutputDifference


def agreement(job: Job, outputs: Mapping[str, Array]) -> Agreement | None:
    """Compare a trial's first outputs with those in fp32; None if the job has no reference.

    Raises JobError if no float output can be compared, or if a number is finite only in fp32.
    """
    if job.reference is None:
        return None
    exact = _fp32_first_outputs(job, job.reference)
    compared = tuple(
        _difference(job, name, value, outputs[name])
        for name, value in exact.items()
        if value.dtype == np.float32 and value.size and name in outputs
    )
    if not compared:
        raise JobError(
            f"{job.graph}: expected an output of floats to compare with fp32, found none"
        )
    return Agreement(examples=job.reference.examples, outputs=compared)


def _fp32_first_outputs(job: Job, reference: Reference) -> dict[str, Array]:
    exact = job.model_copy(
        update={
            "graph": reference.graph,
            "batches": reference.batches,
            "provider": reference.provider or job.provider,
            "session": job.session.model_copy(update={"tf32": False, "cuda_graph": False}),
        }
    )
    session = open_session(exact.graph, exact.provider, exact.session)
    inputs = {info.name for info in session.get_inputs()}
    # Carried values that only the trial's graph has, such as the loss scale, are left out.
    shared = tuple(each for each in job.carried if each.input in inputs)
    exact = exact.model_copy(update={"carried": shared})
    step = job_stepper(exact, session, initial_parameters(exact))
    step()
    carried = {each.output for each in shared}
    names = [info.name for info in session.get_outputs() if info.name not in carried]
    return {name: step.output(name) for name in names}


def _difference(job: Job, name: str, exact: Array, got: Array) -> OutputDifference:
    finite = np.isfinite(exact)
    if not np.all(np.isfinite(got[finite])):
        raise JobError(
            f"output {name!r}: expected finite numbers, as in fp32, got some beyond the range of "
            f"{job.precision}: measure this model in fp32 or bf16"
        )
    difference = (got - exact)[finite].astype(np.float64)
    norm = float(np.linalg.norm(exact[finite].astype(np.float64)))
    return OutputDifference(
        output=name,
        maximum_absolute=float(np.max(np.abs(difference), initial=0.0)),
        relative_to_norm=float(np.linalg.norm(difference)) / norm if norm else None,
        largest_changed=_largest_changed(exact, got),
    )


def _largest_changed(exact: Array, got: Array) -> float | None:
    if exact.ndim < 2 or exact.shape[-1] < 2:
        return None
    return float(np.mean(np.argmax(exact, axis=-1) != np.argmax(got, axis=-1)))


def held_out_loss(job: Job, values: Mapping[str, Array]) -> float | None:
    """The mean loss over the held-out batches, with the parameters in ``values``.

    None without an evaluation. Raises JobError if an input has no value or the loss is not finite.
    """
    if job.evaluation is None:
        return None
    # No CUDA graph, which needs fixed addresses and only helps timed steps.
    settings = job.session.model_copy(update={"cuda_graph": False})
    # Closed when this call ends, so that timed steps have all memory and threads.
    session = open_session(job.evaluation.graph, job.provider, settings)
    batches = load_arrays(job.evaluation.batches)
    types = {info.name: tensor_type(info) for info in session.get_inputs()}
    carried = {each.input: each.output for each in job.evaluation.carried}
    constant = {name: kind for name, kind in types.items() if name not in batches}
    known = {name: value for name, value in values.items() if name not in carried}
    fixed = first_values(job.evaluation.graph, constant, known, job.evaluation.carried)
    pools = {name: pool for name, pool in batches.items() if name in types}
    losses = []
    for batch in zip(*pools.values(), strict=False):
        fed = {**fixed, **dict(zip(pools, batch, strict=True))}
        value, *after = session.run([job.evaluation.loss, *carried.values()], fed)
        fixed |= dict(zip(carried, after, strict=True))
        losses.append(np.mean(value))
    loss = float(np.mean(losses))
    if not math.isfinite(loss):
        raise _diverged("held-out loss", loss)
    return loss


def require_finite(job: Job, output: Callable[[str], Array]) -> None:
    """Raise JobError if an output of the last training step has a number that is not finite."""
    if job.mode == "training":
        for name in job.outputs:
            values = output(name)
            if not np.all(np.isfinite(values)):
                raise _diverged(f"output {name!r} of the last step", values.ravel()[0])


def _diverged(quantity: str, got: object) -> JobError:
    return JobError(
        f"{quantity}: expected finite numbers, got {got}: training diverged, so its times do not "
        "count; lower the learning rate in the model's spec"
    )
