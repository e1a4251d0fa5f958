"""The target of a training: an accuracy, a loss or a perplexity, and whether it is met."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from epochcost.errors import InputError
from epochcost.results.trainings import Point

# By what can be measured, whether more of it is better.
_MEASURES = {"accuracy": True, "loss": False, "perplexity": False}
_FORM = re.compile(r"\s*([a-z]+)\s*(>=|<=)\s*([0-9.]+(?:e-?[0-9]+)?)\s*(%?)\s*")


@dataclass(frozen=True)
class Target:
    """A bound on what the held-out examples measure; met by the first evaluation that keeps it."""

    measure: str
    value: float

    def met(self, curve: Sequence[Point]) -> bool:
        """Whether the last evaluation keeps it; raises InputError where it has no such measure."""
        point = curve[-1]
        if self.measure != "accuracy":
            bound = math.log(self.value) if self.measure == "perplexity" else self.value
            return point.loss <= bound
        if point.accuracy is None:
            raise InputError(
                "target: expected loss or perplexity of a model that does not answer by classes, "
                "got accuracy"
            )
        return point.accuracy >= self.value


def parse_target(text: str) -> Target:
    """``accuracy >= 0.98``, ``accuracy >= 98 %``, ``loss <= 0.1`` or ``perplexity <= 80``."""
    found = _FORM.fullmatch(text)
    measure, sign, number, percent = found.groups() if found else ("", "", "", "")
    if measure not in _MEASURES or sign != (">=" if _MEASURES[measure] else "<="):
        raise InputError(
            "--target: expected accuracy >= SHARE, loss <= NUMBER or perplexity <= NUMBER, "
            f"got {text!r}"
        )
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        raise InputError(f"--target: expected a number, got {number!r}") from None
    if measure == "accuracy" and not 0 < value <= 1:
        raise InputError(f"--target: expected a share from 0 to 1 or a percentage, got {text!r}")
    if measure == "perplexity" and value < 1:
        raise InputError(f"--target: expected a perplexity from 1, got {text!r}")
    return Target(measure, value)
