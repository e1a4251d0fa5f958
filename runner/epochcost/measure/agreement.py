"""How far a trial's outputs are from those in fp32, on one batch outside the timed steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from epochcost.measure.failures import JobError
from epochcost.measure.job import Job, Reference
from epochcost.measure.session import open_session
from epochcost.measure.stepping import Array, Stepper
from epochcost.measure.values import graph_inputs, initial_parameters
from epochcost.results.records import Agreement, OutputDifference


def agreement(job: Job, outputs: Mapping[str, Array]) -> Agreement | None:
    """Compare ``outputs``, those of the first step, with the first step of the job's reference.

    None where the job names no reference. The reference starts from the same parameters and
    carried state; its session lives only for this call. Raises JobError where a number is not
    finite that is so in fp32: such times are those of a model that does not work.
    """
    if job.reference is None:
        return None
    exact = _first_outputs(job, job.reference)
    compared = tuple(
        _difference(job, name, exact[name], outputs[name])
        for name in _compared(exact)
        if name in outputs
    )
    if not compared:
        raise JobError(f"{job.graph}: demanded an output of floats to compare with fp32; got none")
    return Agreement(
        examples=job.reference.examples, outputs=compared, quantization=job.reference.quantization
    )


def _first_outputs(job: Job, reference: Reference) -> dict[str, Array]:
    """Every output of a first step in fp32 that is not carried to the next.

    What only the trial's graph carries, such as the scale of a loss, the reference lacks.
    """
    plain = job.session.model_copy(update={"tf32": False, "cuda_graph": False})
    same = {"graph": reference.graph, "batches": reference.batches, "session": plain}
    in_fp32 = job.model_copy(update=same)
    session = open_session(reference.graph, job.provider, plain)
    inputs = graph_inputs(in_fp32, initial_parameters(in_fp32), session.get_inputs())
    known = {info.name for info in session.get_inputs()}
    both = [each for each in job.carried if each.input in known]
    step = Stepper(session, job.provider, job.mode, inputs, both, plain)
    step()
    carried = {each.output for each in both}
    names = [info.name for info in session.get_outputs() if info.name not in carried]
    return {name: step.output(name) for name in names}


def _compared(outputs: Mapping[str, Array]) -> Iterator[str]:
    return (name for name, value in outputs.items() if value.dtype == np.float32 and value.size)


def _difference(job: Job, name: str, exact: Array, got: Array) -> OutputDifference:
    finite = np.isfinite(exact)
    if not np.all(np.isfinite(got[finite])):
        raise JobError(
            f"output {name!r}: demanded finite numbers, as in fp32; got some beyond the range of "
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
