"""Inference of a prepared case by epochcost, PyTorch and OpenVINO; see ``work.Contender``.

Each contender copies a batch into its input tensors and computes every output into memory of the
host. Only the contender's libraries are loaded.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from steps.work import Array, Work


class _Contender:
    """Parts of all contenders: the work, the threads, and a number from every output."""

    def __init__(self, work: Work, threads: int) -> None:
        self._work, self._threads = work, threads

    def outputs(self) -> list[Array]:
        """All outputs of the last run, in the graph's order."""
        raise NotImplementedError

    def loss(self) -> float:
        """The product of the outputs with random signs."""
        signs = np.random.default_rng(0)
        drawn = (array * signs.choice((-1.0, 1.0), array.shape) for array in self.outputs())
        return float(sum(np.sum(array, dtype=np.float64) for array in drawn))

    def finish(self) -> None:
        """Nothing is queued on a CPU."""


class Ours(_Contender):
    """The session and bindings of a trial in `epochcost run`; weights are constants."""

    def start(self) -> None:
        """Open the session and bind inputs and outputs."""
        from epochcost.measure import stepping
        from epochcost.measure.job import Job
        from epochcost.measure.session import open_session

        job = Job.model_validate_json(self._work.job.read_text("utf-8"))
        settings = job.session.model_copy(update={"threads": self._threads})
        parameters = stepping.initial_parameters(job)
        self._weights = stepping.constant_weights(job, parameters)
        session = open_session(job.graph, job.provider, settings, weights=self._weights)
        inputs = stepping.graph_inputs(job, parameters, session.get_inputs())
        self._stepper = stepping.Stepper(
            session, job.provider, job.mode, inputs, job.carried, settings
        )

    def __call__(self) -> None:
        """Answer a batch."""
        self._stepper()

    def outputs(self) -> list[Array]:
        """All outputs of the last run."""
        return [self._stepper.output(name) for name in self._work.outputs]


class PyTorch(_Contender):
    """The module that the graph was exported from, in evaluation mode, eager."""

    compiled = False

    def start(self) -> None:
        """Load the module, and compile it for torch.compile."""
        import torch

        from steps.pytorch import loaded

        torch.set_num_threads(self._threads)
        self._mode = torch.inference_mode
        module = loaded(self._work).eval()
        self._network: Any = torch.compile(module) if self.compiled else module
        batches = [
            {name: torch.from_numpy(array) for name, array in batch.items()}
            for batch in self._work.batches()
        ]
        self._held = {name: value.clone() for name, value in batches[0].items()}
        self._fresh = itertools.cycle(batches)
        self._results: Any = None

    def __call__(self) -> None:
        """Answer a batch."""
        with self._mode():
            for name, value in next(self._fresh).items():
                self._held[name].copy_(value)
            self._results = self._network(*(self._held[name] for name in self._work.inputs))

    def outputs(self) -> list[Array]:
        """All outputs of the last run."""
        results = self._results
        return [value.numpy() for value in (results if isinstance(results, tuple) else (results,))]


class Compiled(PyTorch):
    """The same module through torch.compile with default settings."""

    compiled = True


class OpenVino(_Contender):
    """OpenVINO's CPU plugin in fp32 on the same ONNX file, with its hint for latency."""

    def start(self) -> None:
        """Compile the model."""
        import openvino

        options = {
            "INFERENCE_NUM_THREADS": self._threads,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
        }
        compiled = openvino.Core().compile_model(str(self._work.stored), "CPU", options)
        self._request = compiled.create_infer_request()
        self._fresh = itertools.cycle(self._work.batches())
        self._held: Mapping[str, Array] = {
            name: self._request.get_tensor(name).data for name in self._work.inputs
        }

    def __call__(self) -> None:
        """Answer a batch."""
        batch = next(self._fresh)
        for name, held in self._held.items():
            np.copyto(held, batch[name])
        self._request.infer()

    def outputs(self) -> list[Array]:
        """All outputs of the last run."""
        return [self._request.get_tensor(name).data for name in self._work.outputs]
