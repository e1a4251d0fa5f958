"""What shows that training trains, outside the timed steps: held-out loss, finite outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from epochcost.measure.failures import JobError
from epochcost.measure.job import Job
from epochcost.measure.session import open_session
from epochcost.measure.stepping import Array, tensor_type
from epochcost.measure.values import load_arrays


def held_out_loss(job: Job, values: Mapping[str, Array]) -> float | None:
    """Average the loss over the held-out batches, with parameters as ``values`` has them.

    Carried state starts at zero and goes from one batch to the next. None where the job asks for no
    evaluation. The session lives only for this call, so that it holds neither memory nor threads
    while steps are timed. Raises JobError for an input without a
    value and for a loss that is not finite.
    """
    if job.evaluation is None:
        return None
    # A CUDA graph would want fixed addresses; nothing here is timed.
    settings = job.session.model_copy(update={"cuda_graph": False})
    session = open_session(job.evaluation.graph, job.provider, settings)
    batches = load_arrays(job.evaluation.batches)
    infos = {info.name: info for info in session.get_inputs()}
    carried = {c.input: c.output for c in job.evaluation.carried}
    known = {**values, **{name: np.zeros(*tensor_type(infos[name])) for name in carried}}
    fixed = {name: known[name] for name in infos if name in known and name not in batches}
    missing = [name for name in infos if name not in batches and name not in fixed]
    if missing:
        raise JobError(f"{job.evaluation.graph}: input {missing[0]!r} has no value")
    losses = []
    for batch in _each(batches, list(infos)):
        read = [job.evaluation.loss, *carried.values()]
        value, *after = session.run(read, {**fixed, **batch})
        fixed |= dict(zip(carried, after, strict=True))
        losses.append(np.mean(value))
    loss = float(np.mean(losses))
    if not math.isfinite(loss):
        raise _diverged("held-out loss", loss)
    return loss


def require_finite(job: Job, output: Callable[[str], Array]) -> None:
    """Check the outputs of interest of the last training step.

    ``output`` reads one by name. Raises JobError where a number is not finite: numbers that are no
    numbers can be faster or slower to compute with.
    """
    if job.mode == "training":
        for name in job.outputs:
            values = output(name)
            if not np.all(np.isfinite(values)):
                raise _diverged(f"output {name!r} of the last step", values.ravel()[0])


def _diverged(what: str, got: object) -> JobError:
    return JobError(
        f"{what}: demanded finite numbers; got {got}: training diverged, so its times are those "
        "of no training; lower the learning rate in the model's spec"
    )


def _each(batches: Mapping[str, Array], names: list[str]) -> list[dict[str, Array]]:
    fed = {name: pool for name, pool in batches.items() if name in names}
    count = min((len(pool) for pool in fed.values()), default=0)
    return [{name: pool[index] for name, pool in fed.items()} for index in range(count)]
