"""The step of onnxruntime-training 1.19.2.

This version has two optimizers, SGD without momentum and AdamW. If the spec names another
optimizer, the nearer of the two is used and ``note`` says so. Its AdamW adds epsilon before the
bias correction, and decays all parameters.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from onnxruntime import SessionOptions, set_default_logger_severity

from steps.ort_graph import LOSS, trainable
from steps.work import Array, Work

# Its package imports two parts of PyTorch that are not needed here.
for _part in ("amp", "optim"):
    sys.modules[f"onnxruntime.training.{_part}"] = ModuleType(_part)

from onnxruntime.training import artifacts, onnxblock  # noqa: E402
from onnxruntime.training.api import CheckpointState, Module, Optimizer  # noqa: E402

_SUBSTITUTES = {"sgd": "SGD without momentum", "rmsprop": "AdamW", "adadelta": "AdamW"}
# Adadelta's rate of 1 would make AdamW diverge, and NaN may change the time.
_SUBSTITUTE_RATE = 1e-4
_ERRORS_ONLY = 3


class OrtTraining:
    """onnxruntime-training as ``work.Contender``."""

    def __init__(self, work: Work, threads: int) -> None:
        self._work = work
        self._options = SessionOptions()
        self._options.intra_op_num_threads = threads
        self._weights = work.weights()
        self._batches = work.batches()
        self._held = {name: np.zeros(work.carried_shape, np.float32) for name in work.carried}
        self.note = _note(work)
        set_default_logger_severity(_ERRORS_ONLY)

    def start(self) -> None:
        """Generate gradient and optimizer graphs, and open both sessions."""
        work = self._work
        with tempfile.TemporaryDirectory(dir=work.folder) as name:
            folder = Path(name)
            _generate(work, self._weights, folder)
            self._weights = {}
            state = CheckpointState.load_checkpoint(folder / "checkpoint")
            graph = folder / "training_model.onnx"
            self._module = Module(graph, state, session_options=self._options)
            self._optimizer = Optimizer(folder / "optimizer_model.onnx", self._module)
        rate = _SUBSTITUTE_RATE if _substituted(work) else work.optimizer["learning_rate"]
        self._optimizer.set_learning_rate(rate)
        self._names = self._module.input_names()
        self._fresh = itertools.cycle(self._batches)

    def __call__(self) -> None:
        """Take one step: forward, loss, backward, update, and reset of the gradients."""
        feeds = {**next(self._fresh), **self._held}
        outputs = self._module(*(feeds[name] for name in self._names))
        self._loss, *after = outputs if isinstance(outputs, tuple) else (outputs,)
        self._optimizer.step()
        self._module.lazy_reset_grad()
        self._held = dict(zip(self._work.carried, after, strict=True))

    def loss(self) -> float:
        """The loss of the last step."""
        return float(self._loss)


def _substituted(work: Work) -> bool:
    name = work.optimizer["name"]
    return name not in {"adam", "adamw"} and (name != "sgd" or work.optimizer["momentum"] > 0)


def _note(work: Work) -> str | None:
    """How the used optimizer differs from the spec's; None if both are the same."""
    name = work.optimizer["name"]
    if not _substituted(work):
        return None if name == "sgd" else "its own AdamW"
    return f"{_SUBSTITUTES[name]} instead of {'momentum' if name == 'sgd' else name}"


def _generate(work: Work, weights: dict[str, Array], folder: Path) -> None:
    clip = None if work.clip_norm is None else onnxblock.optim.ClipGradNorm(work.clip_norm)
    artifacts.generate_artifacts(
        trainable(work, weights),
        requires_grad=list(work.trained),
        frozen_params=[name for name in weights if name not in work.trained],
        loss_input_names=[LOSS],
        additional_output_names=list(work.carried.values()) or None,
        optimizer=_optimizer(work, clip),
        artifact_directory=folder,
    )


def _optimizer(work: Work, clip: Any) -> Any:
    settings = work.optimizer
    if settings["name"] == "sgd":
        return onnxblock.optim.SGD(clip_grad=clip)
    return onnxblock.optim.AdamW(
        betas=(settings.get("beta1", 0.9), settings.get("beta2", 0.999)),
        eps=settings.get("epsilon", 1e-8),
        weight_decay=settings.get("weight_decay", 0.0),
        clip_grad=clip,
    )
