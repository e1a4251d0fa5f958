"""What is used and what it is billed as: usage in, lines out, and the quote that they add up to."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost.money import exact_arithmetic, kept
from epochcost.errors import InputError
from epochcost.units import MAX_DURATION_SECONDS

# More machines or vCPUs at once than anybody rents: a slip of the keyboard.
MOST_AT_ONCE = 1_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """How long how many machines run at once; each is one start and is billed by itself.

    The duration is kept to 18 decimals. ``vcpus`` of one machine are needed by plans per vCPU only,
    which do not cover ``accelerated`` work. Raises InputError on times or counts that are not
    positive, not finite or beyond reason.
    """

    duration_seconds: Decimal
    count: int = 1
    vcpus: int | None = None
    accelerated: bool = False

    def __post_init__(self) -> None:
        with exact_arithmetic():
            object.__setattr__(self, "duration_seconds", _duration(self.duration_seconds))
        _check_number("count", self.count)
        if self.vcpus is not None:
            _check_number("vcpus", self.vcpus)


@dataclass(frozen=True, slots=True)
class Line:
    """One visible part of a bill: ``amount`` is ``quantity`` (in ``unit``) times ``rate``.

    Figures are kept to 18 decimals. ``rate`` is in currency per ``unit``.
    """

    label: str
    quantity: Decimal
    unit: str
    rate: Decimal
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Quote:
    """A bill: lines whose sum is the total, exactly.

    ``price_id`` is None where a bare rate was quoted; ``assumed`` says that the plan's figures are
    assumptions and nobody's price list.
    """

    lines: tuple[Line, ...]
    currency: str
    price_id: str | None
    assumed: bool

    @property
    def total(self) -> Decimal:
        """The exact sum of the lines' amounts, in ``currency``."""
        with exact_arithmetic():
            return sum((line.amount for line in self.lines), Decimal(0))


def _duration(seconds: Decimal) -> Decimal:
    if seconds.is_finite() and 0 < seconds <= MAX_DURATION_SECONDS:
        duration = kept(seconds)
        if duration > 0:
            return duration
    raise InputError(f"duration: demanded at least 1e-18 s and at most 100 years; got {seconds} s")


def _check_number(name: str, value: int) -> None:
    if not 1 <= value <= MOST_AT_ONCE:
        raise InputError(f"{name}: demanded a whole number from 1 to {MOST_AT_ONCE:,}; got {value}")
