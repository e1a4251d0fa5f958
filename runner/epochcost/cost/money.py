"""Exact arithmetic for money: a decimal context, and rounding to 18 decimals.

Amounts, rates and quantities are rounded with halves to even. Sums of rounded values are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import (
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
    localcontext,
)

from epochcost.errors import InputError
from epochcost.specs.base import ISO_4217

# Amounts up to LARGEST with 18 decimals, times a million machines, fit into CONTEXT's 60 digits.
QUANTUM = Decimal("1e-18")
LARGEST = Decimal("1e30")
CONTEXT = Context(
    prec=60, rounding=ROUND_HALF_EVEN, traps=[InvalidOperation, DivisionByZero, Overflow]
)


@contextmanager
def exact_arithmetic() -> Iterator[None]:
    """A context of 60 significant digits; raises InputError for invalid or too large results."""
    try:
        with localcontext(CONTEXT):
            yield
    except (InvalidOperation, DivisionByZero, Overflow):
        raise InputError(
            "cost: expected numbers whose results fit 60 digits; check price, billing step and time"
        ) from None


def quantized(value: Decimal) -> Decimal:
    """Round a value to 18 decimals; raises InputError for NaN, infinity or more than 1e30.

    Call the function within `exact_arithmetic`. A symbol (see `tracing`) is returned unchanged.
    """
    if type(value) is not Decimal:
        return value
    try:
        if value.copy_abs() <= LARGEST:
            return value.quantize(QUANTUM)
    except InvalidOperation:  # a comparison with NaN
        pass
    raise InputError(f"cost: expected finite numbers of at most {LARGEST}, got {value:.6g}")


def quantized_positive(value: Decimal, name: str = "rate") -> Decimal:
    """Round to 18 decimals within `exact_arithmetic`; raises InputError if the result is <= 0."""
    quantity = quantized(value)
    if quantity <= 0:
        raise InputError(f"{name}: expected an amount above 0, at least 1e-18, got {value:.6g}")
    return quantity


def require_currency(code: str) -> None:
    """Raise InputError unless ``code`` is a currency of ISO 4217."""
    if code not in ISO_4217:
        raise InputError(f"currency: expected a code of ISO 4217, such as USD, got {code!r:.40}")
