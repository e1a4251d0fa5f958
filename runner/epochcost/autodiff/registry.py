"""What is known of each operator's derivative: a rule, zero by nature, or refused with a reason.

Keys are domain, operator and the version since which the operator has its meaning: a rule answers
only for the versions that it names, so a new version is refused until somebody has read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from epochcost.autodiff.builder import Builder, Value
from epochcost.autodiff.node import Node

# One cotangent, or one per input; None where an input takes no gradient.
Cotangents = Value | Sequence[Value | None]


class Rule(Protocol):
    """A vector-Jacobian product: cotangents of the outputs in, cotangents of the inputs out.

    ``dy`` holds the cotangents of the float outputs, None where the loss does not depend on one;
    at least one is a value. A result may still have the broadcast
    shape: it is summed to the input's shape by the caller, once, for all rules.
    """

    def __call__(self, op: Builder, node: Node, /, *dy: Any) -> Cotangents:
        """Emit the backward nodes of ``node`` through ``op``."""
        ...


@dataclass(frozen=True)
class Gradient:
    """The operator has a rule."""

    rule: Rule


@dataclass(frozen=True)
class Zero:
    """The derivative is zero wherever it exists: shapes, comparisons, rounding."""


@dataclass(frozen=True)
class Refused:
    """No derivative is given, for this reason."""

    reason: str


Answer = Gradient | Zero | Refused
Key = tuple[str, str, int]
_ANSWERS: dict[Key, Answer] = {}


def gradient(op_type: str, versions: Iterable[int], domain: str = "") -> Callable[[Rule], Rule]:
    """Register the decorated rule for the operator's ``versions``."""

    def register(rule: Rule) -> Rule:
        for version in versions:
            _register((domain, op_type, version), Gradient(rule))
        return rule

    return register


def zero(op_type: str, versions: Iterable[int], domain: str = "") -> None:
    """Register that the operator's derivative is zero by nature."""
    for version in versions:
        _register((domain, op_type, version), Zero())


def refused(op_type: str, versions: Iterable[int], reason: str, domain: str = "") -> None:
    """Register that the operator is not differentiated, and why."""
    for version in versions:
        _register((domain, op_type, version), Refused(reason))


def answer(domain: str, op_type: str, version: int) -> Answer | None:
    """What is registered, or None for an operator nobody has written about."""
    return _ANSWERS.get((domain, op_type, version))


def refusal(domain: str, op_type: str) -> str | None:
    """Why the operator is refused, in whichever version; None where it is not."""
    return next(
        (
            known.reason
            for (owner, name, _), known in _ANSWERS.items()
            if (owner, name) == (domain, op_type) and isinstance(known, Refused)
        ),
        None,
    )


def registered() -> dict[Key, Answer]:
    """The whole table, for the documentation and the tests."""
    return dict(_ANSWERS)


def _register(key: Key, value: Answer) -> None:
    if key in _ANSWERS:
        raise ValueError(f"two answers are registered for {key}")
    _ANSWERS[key] = value
