"""Our prefill and our decode: the very steps that `epochcost run` times, from the same jobs.

A job decodes at one length. Its timed step has the context of the middle of an answer, and reads
the same number of tokens on average as engines whose context grows; the compared one follows the
prompt. The step leaves logits on the host; the choice of a token, which is the engine's, is timed
with it here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from epochcost.measure.job import Job
from epochcost.measure.session import open_session, share_threads
from epochcost.measure.stepping import (
    StepInputs,
    Stepper,
    constant_weights,
    graph_inputs,
    initial_parameters,
)
from epochcost.specs.decoder import MASK, TOKENS
from generators.case import Array, Case

PREFILL, COMPARED, TIMED = "prefill", "compared", "timed"


class Ours:
    """Sessions for both phases, over a pool of threads that they share as in a worker."""

    def __init__(self, case: Case, folder: Path) -> None:
        self._folder, self._prompts = folder, case.prompts()
        job = self._job(PREFILL)
        share_threads(job.session)
        self._parameters = initial_parameters(job)
        self._next = self._prompts
        self._prefill = self._stepper(PREFILL, {})
        self.prefill()
        self._decode = self._stepper(TIMED, self._prefill.carried_values())

    def scores(self) -> Array:
        """See ``Engine``."""
        self.fresh()
        self.prefill()
        step = self._stepper(COMPARED, self._prefill.carried_values())
        step()
        return np.stack([_logits(self._prefill), _logits(step)])

    def fresh(self) -> None:
        """See ``Engine``."""
        self._next = self._prompts

    def prefill(self) -> None:
        """See ``Engine``."""
        self._take(self._prefill)

    def decode(self) -> None:
        """See ``Engine``."""
        self._take(self._decode)

    def _take(self, step: Stepper) -> None:
        step()
        self._next = _logits(step).argmax(axis=1)[:, None]

    def _job(self, name: str) -> Job:
        return Job.model_validate_json((self._folder / name / "job.json").read_bytes())

    def _stepper(self, name: str, cache: Mapping[str, Array]) -> Stepper:
        """One over a cache that begins with ``cache``, and has zeros behind it."""
        job = self._job(name)
        weights = constant_weights(job, self._parameters)
        session = open_session(job.graph, "cpu", job.session, weights=weights)
        inputs = graph_inputs(job, self._parameters, session.get_inputs())
        held = {key: _longer(values, inputs.constants[key]) for key, values in cache.items()}
        inputs = StepInputs(inputs.batches, {**inputs.constants, **held})
        stepper = Stepper(session, "cpu", job.mode, inputs, job.carried, job.session)
        stepper.feed_from(self._feeds(np.ones(stepper.input_type(MASK)[0], np.int64)))
        return stepper

    def _feeds(self, mask: Array) -> Iterator[dict[str, Array]]:
        while True:
            yield {TOKENS: self._next, MASK: mask}


def _logits(step: Stepper) -> Array:
    return step.output("logits")[:, -1]


def _longer(values: Array, room: Array) -> Array:
    """Keys or values [batch, heads, tokens, numbers] at the beginning of their room."""
    longer = np.zeros(room.shape, room.dtype)
    longer[:, :, : values.shape[2]] = values
    return longer
