"""Reading the equation of an Einsum: one letter for each axis, none of them implied."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from epochcost.errors import ModelError

_ELLIPSIS = "..."


@dataclass(frozen=True)
class Equation:
    """The letters of each operand's axes and of the result's, such as ("ij", "jk") and "ik"."""

    terms: tuple[str, ...]
    result: str


def parse(text: str, ranks: Sequence[int]) -> Equation:
    """The equation for operands of these ranks; raises ModelError where the two do not fit.

    Letters that are not used yet stand for an ellipsis, counted from its last axis. Without an
    arrow, the result has the ellipsis and then, in alphabetical order, the letters that occur once.
    """
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    covered = [
        rank - len(term.replace(_ELLIPSIS, "")) for term, rank in zip(terms, ranks, strict=False)
    ]
    if len(terms) != len(ranks) or any(
        count if _ELLIPSIS not in term else count < 0
        for term, count in zip(terms, covered, strict=True)
    ):
        raise ModelError(f"equation {text!r} does not fit operands of ranks {list(ranks)}")
    implied = fresh_letters(left + right, max([*covered, 0]))
    if not arrow:
        once = sorted(c for c in string.ascii_letters if left.count(c) == 1)
        right = _ELLIPSIS + "".join(once)
    return Equation(
        tuple(
            term.replace(_ELLIPSIS, implied[len(implied) - count :])
            for term, count in zip(terms, covered, strict=True)
        ),
        right.replace(_ELLIPSIS, implied),
    )


def fresh_letters(used: Iterable[str], count: int) -> str:
    """Letters that do not occur in ``used``."""
    taken = set(used)
    return "".join(c for c in string.ascii_letters if c not in taken)[:count]
