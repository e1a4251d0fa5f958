"""The usage to bill, the lines of a bill, and the bill; free credit is a negative line."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost.money import exact_arithmetic, quantized
from epochcost.errors import InputError
from epochcost.units import MAX_DURATION_SECONDS

# Larger numbers of machines or vCPUs are typing errors.
MOST_AT_ONCE = 1_000_000
# An exabyte.
MOST_GIGABYTES = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """The use of machines to be billed: ``count`` machines at once, in ``runs`` successive runs.

    Each run starts its machines anew. Only plans per vCPU need ``vcpus``, the number of one
    machine; they cannot bill ``accelerated`` work. A GB is 1e9 bytes. Raises InputError for times
    or numbers that are not positive, not finite or too large.
    """

    duration_seconds: Decimal
    count: int = 1
    vcpus: int | None = None
    accelerated: bool = False
    runs: int = 1
    egress_gb: Decimal = Decimal(0)

    def __post_init__(self) -> None:
        with exact_arithmetic():
            object.__setattr__(self, "duration_seconds", _duration(self.duration_seconds))
            if self.egress_gb:
                object.__setattr__(self, "egress_gb", _gigabytes(self.egress_gb))
        _check_number("count", self.count)
        _check_number("runs", self.runs)
        _check_number("count times runs", self.machines)
        if self.vcpus is not None:
            _check_number("vcpus", self.vcpus)

    @property
    def machines(self) -> int:
        """The number of machines billed: ``count`` times ``runs``."""
        return self.count * self.runs


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a bill: ``amount`` is ``quantity`` (in ``unit``) × ``rate``, with 18 decimals."""

    label: str
    quantity: Decimal
    unit: str
    rate: Decimal
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Quote:
    """A bill: its lines, whose exact sum is the total.

    ``price_id`` and ``as_of``, the date of the price, are None for a bare rate without a spec. An
    ``assumed`` price is no market price. ``elapsed_seconds`` is from the request for machines to
    the job's end, with start-ups, expected restarts and expected failed starts. ``credit_left`` is
    None if the bill counts no free credit.
    """

    lines: tuple[Line, ...]
    currency: str
    price_id: str | None
    assumed: bool
    elapsed_seconds: Decimal
    as_of: dt.date | None = None
    credit_used: Decimal = Decimal(0)
    credit_left: Decimal | None = None

    @property
    def total(self) -> Decimal:
        """The amount to be paid in ``currency``: the exact sum of the lines' amounts."""
        with exact_arithmetic():
            return sum((line.amount for line in self.lines), Decimal(0))

    @property
    def before_credit(self) -> Decimal:
        """The amount of the bill before free credit is subtracted."""
        with exact_arithmetic():
            return self.total + self.credit_used


def _duration(seconds: Decimal) -> Decimal:
    if seconds.is_finite() and 0 < seconds <= MAX_DURATION_SECONDS:
        duration = quantized(seconds)
        if duration > 0:
            return duration
    raise InputError(f"duration: expected at least 1e-18 s and at most 100 years, got {seconds} s")


def _gigabytes(amount: Decimal) -> Decimal:
    if amount.is_finite() and 0 <= amount <= MOST_GIGABYTES:
        return quantized(amount)
    raise InputError(f"egress: expected at least 0 GB and at most {MOST_GIGABYTES:,}, got {amount}")


def _check_number(name: str, value: int) -> None:
    if not 1 <= value <= MOST_AT_ONCE:
        raise InputError(f"{name}: expected a whole number from 1 to {MOST_AT_ONCE:,}, got {value}")
