"""The training step as `epochcost run` times it: the same job, bound in the same way."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort

from epochcost.measure.job import Job
from epochcost.measure.session import open_session
from epochcost.measure.stepping import (
    StepInputs,
    Stepper,
    initial_parameters,
    load_arrays,
    tensor_type,
)
from steps.work import Array, Work


class Ours:
    """ONNX Runtime's session of the step's graph, as ``work.Contender``."""

    def __init__(self, work: Work, threads: int) -> None:
        job = Job.model_validate_json(work.job.read_text("utf-8"))
        settings = job.session.model_copy(update={"threads": threads})
        self._job = job.model_copy(update={"session": settings})
        self._values = initial_parameters(self._job)
        self._batches = load_arrays(job.batches)
        self._stepper: Any = None

    def start(self) -> None:
        """Open the session and bind inputs and outputs."""
        job = self._job
        session = open_session(job.graph, job.provider, job.session)
        constants = {
            info.name: self._constant(info)
            for info in session.get_inputs()
            if info.name not in self._batches
        }
        self._values = {}
        inputs = StepInputs(self._batches, constants)
        self._stepper = Stepper(session, job.provider, "training", inputs, job.carried, job.session)

    def _constant(self, info: ort.NodeArg) -> Array:
        if info.name in self._values:
            return self._values.pop(info.name)
        fills = {carried.input: carried.fill for carried in self._job.carried}
        shape, dtype = tensor_type(info)
        return np.broadcast_to(np.asarray({**fills, **self._job.scalars}[info.name], dtype), shape)

    def __call__(self) -> None:
        """Take one step."""
        self._stepper()

    def finish(self) -> None:
        """Wait for nothing: every run of ONNX Runtime waits for its device."""

    def loss(self) -> float:
        """The loss of the last step."""
        return float(self._stepper.output(self._job.outputs[0]))
