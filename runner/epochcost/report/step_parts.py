"""Where the time of a training step goes: forward, backward, update. Counted, or partly measured.

A training step is timed as a whole. Its forward pass alone is what inference times at the same
batch size on the same machine; without that the parts are estimated from what each computes and
must move at least.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from epochcost.report.arithmetic import Arithmetic
from epochcost.report.observations import Observation
from epochcost.specs.model import Training
from epochcost.specs.training import Optimizer
from epochcost.statistics import Bounded, ratio

BYTES_PER_NUMBER = 4
# The optimizers' states, of the parameter's size each (docs/method/models.md names their formulas).
_STATES = {"sgd": 0, "rmsprop": 1, "adagrad": 1, "adadelta": 2, "adam": 2, "adamw": 2}


@dataclass(frozen=True)
class Part:
    """A part of a step: its operations, and the bytes of parameters that it must move at least.

    Tables that are looked up are left out: a step moves some of their rows only.

    ``share`` is of the step's operations; None for the update, whose elementwise work is not
    counted (`graphs.counting`).
    """

    name: str
    flops: float | None
    least_bytes: int
    share: float | None


@dataclass(frozen=True)
class ForwardShare:
    """A training step beside inference at its batch size; ``share`` is forward over the step."""

    training: Observation
    inference: Observation
    share: Bounded


def estimated_parts(
    counted: Arithmetic | None, training: Training | None, batch_size: int
) -> tuple[Part, ...]:
    """The parts of a step at a batch size, estimated; none where the model cannot be counted.

    The backward pass computes twice the forward pass, as the literature counts it (Kaplan et al.
    2020, arXiv 2001.08361, section 2.1), which does not hold of frozen parameters.
    """
    if counted is None or training is None or training.freeze:
        return ()
    forward, weights = counted.forward_flops * batch_size, counted.read_whole * BYTES_PER_NUMBER
    # Weights and gradients are read, weights written; states are read and written.
    update = (3 + 2 * states(training.optimizer)) * weights
    return (
        Part("forward", forward, weights, 1 / 3),
        Part("backward", 2 * forward, 2 * weights, 2 / 3),
        Part("update", None, update, None),
    )


def states(optimizer: Optimizer) -> int:
    """How many numbers an optimizer keeps for each parameter."""
    momentum = bool(getattr(optimizer, "momentum", 0))
    return _STATES[optimizer.name] + momentum


def forward_shares(observed: Sequence[Observation]) -> tuple[ForwardShare, ...]:
    """Every measured training step that has inference beside it, in order."""
    return tuple(_shares([one for one in observed if one.kind == "measured"]))


def _shares(measured: Sequence[Observation]) -> Iterator[ForwardShare]:
    served = {_key(one): one for one in measured if one.mode == "inference"}
    for one in measured:
        other = served.get(_key(one))
        if one.mode == "training" and other is not None:
            yield ForwardShare(one, other, ratio(_step(other), _step(one)))


def _key(observed: Observation) -> tuple[object, ...]:
    return observed.machine, observed.batch_size, observed.software


def _step(observed: Observation) -> Bounded:
    assert observed.step is not None, "a measured observation has a step"
    step = observed.step
    return Bounded(float(step.low), float(step.mean), float(step.high))
