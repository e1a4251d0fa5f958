"""Projects whose one model is declared by a test, and the losses of its training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from epochcost.execute.build import build_job
from epochcost.measure.agreement import held_out_loss
from epochcost.measure.job import Job
from epochcost.measure.runtime import runtime_name
from epochcost.measure.session import open_session
from epochcost.measure.stepping import Stepper, graph_inputs, initial_parameters
from epochcost.plan.digests import graph_sha256, work_sha256
from epochcost.plan.trial import SessionSettings, Trial
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import Mode
from graph_text import model_of_text
from tiny_project import write_tiny_project

_SEED = 8
LANGUAGE = """g (int64[batch, sequence] words, float[batch, 8] h)
    => (float[batch, sequence, 40] logits, float[batch, 8] h_after)
    <float[40, 8] embedding = {@320}, float[8, 40] decoder = {@320}, int64[1] one = {1}>
    { e = Gather(embedding, words) s = ReduceMean <keepdims = 0> (e, one) m = Add(s, h)
      h_after = Tanh(m) u = Unsqueeze(h, one) c = Add(e, u) logits = MatMul(c, decoder) }"""
LANGUAGE_SPEC = """
[dimensions]
sequence = 12
[[inputs]]
name = "words"
vocabulary = 40
[[carried]]
input = "h"
output = "h_after"
"""
ADAM = 'optimizer = { name = "adam", learning_rate = 0.02 }'
TWO_HEADS = """g (float[batch, 12] x) => (float[batch, 5] logits, float[batch, 3] numbers)
    <float[12, 16] body_w = {@192}, float[16, 5] head_a = {@80}, float[16, 3] head_b = {@48}>
    { h = MatMul(x, body_w) t = Tanh(h) logits = MatMul(t, head_a) numbers = MatMul(t, head_b) }"""
TWO_HEADS_SPEC = '[[inputs]]\nname = "x"\nlow = -1\n'
Declare = Callable[[str, str], "Declared"]


@dataclass(frozen=True)
class Declared:
    """A project at ``root`` whose one model is declared by a test."""

    root: Path

    def job(self, mode: Mode = "training", batch_size: int = 16) -> Job:
        """Build the job of a trial of the model."""
        catalogue = load_catalogue(self.root)
        model = catalogue.model("tiny")
        trial = Trial(
            model="tiny",
            mode=mode,
            provider="cpu",
            batch_size=batch_size,
            session=SessionSettings(threads=1),
            seed=4,
            runtime=runtime_name(),
            producer="epochcost",
            graph_sha256=graph_sha256(catalogue, "tiny"),
            spec_sha256=work_sha256(model, mode),
            relative_half_width="0.5",
            minimum_samples=10,
            budget_seconds="1",
        )
        folder = self.root / "job"
        folder.mkdir(exist_ok=True)
        return build_job(trial, model, catalogue.graph_path(model), folder)


def declared(folder: Path, graph: str, spec: str) -> Declared:
    """Write a project with ``graph`` in ONNX's text form and the model settings of ``spec``."""
    root = write_tiny_project(folder)
    onnx.save(model_of_text(_filled(graph)), root / "models" / "tiny.onnx")
    path = root / "specs/models/tiny.toml"
    path.write_text(
        path.read_text().split("[[inputs]]")[0] + spec + "[inference]\nbatch_sizes = [1]\n"
    )
    return Declared(root)


def _filled(graph: str) -> str:
    """Replace each ``@n`` in ``graph`` by n small random numbers."""
    random = np.random.default_rng(_SEED)
    parts = graph.split("@")
    filled = [parts[0]]
    for part in parts[1:]:
        digits = len(part) - len(part.lstrip("0123456789"))
        values = random.uniform(-0.3, 0.3, int(part[:digits]))
        filled.append(",".join(f"{value:.4f}" for value in values) + part[digits:])
    return "".join(filled)


def losses(job: Job, steps: int) -> tuple[float, float]:
    """The held-out loss before and after ``steps`` training steps."""
    values = initial_parameters(job)
    session = open_session(job.graph, job.provider, job.session)
    inputs = graph_inputs(job, values, session.get_inputs())
    step = Stepper(session, job.provider, job.mode, inputs, job.carried)
    before = held_out_loss(job, values)
    for _ in range(steps):
        step()
    after = held_out_loss(job, {**values, **step.carried_values()})
    assert before is not None
    assert after is not None
    return before, after


def training(settings: str) -> str:
    """A [training] table with ``settings`` and 1,000 examples an epoch."""
    return f"[training]\n{settings}\nbatch_sizes = [16]\nexamples_per_epoch = 1000\nepochs = 3\n"


def plain(extra: str, optimizer: str = ADAM) -> str:
    """The spec of the model with two outputs, trained on its classes, with ``extra`` settings."""
    loss = 'loss = "softmax_cross_entropy"\noutput = "logits"\ntarget = { classes = 5 }'
    return TWO_HEADS_SPEC + training(f"{loss}\n{optimizer}\n{extra}")
