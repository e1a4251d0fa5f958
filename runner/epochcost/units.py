"""Parse and format durations, amounts of money and counts. Only text for people is rounded.

All other modules compute in base units: seconds, bytes, and Decimal amounts of a currency. No
function depends on the caller's decimal context.
"""

from __future__ import annotations

import datetime as dt
import math
import os
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation, localcontext

from epochcost.errors import InputError

SECONDS_PER_HOUR = 3600
# Hours of a month in bills of EC2 and GCE for commitments and disks: a twelfth of 8760 hours.
HOURS_PER_BILLED_MONTH = 730
# What to do about prices in another currency: no exchange rate is known.
CONVERT = "convert the amounts, and name the rate and its date in the source"
# Enough digits for the largest amount with all its decimals, and for any duration.
_CONTEXT = Context(prec=100, rounding=ROUND_HALF_EVEN, traps=[InvalidOperation])
# The spellings of each unit, longest first, and its length in seconds.
_UNITS = {
    "ms": ("milliseconds?|ms", Decimal("0.001")),
    "s": ("seconds?|secs?|s", Decimal(1)),
    "m": ("minutes?|mins?|m", Decimal(60)),
    "h": ("hours?|hrs?|h", Decimal(SECONDS_PER_HOUR)),
    "d": ("days?|d", Decimal(86_400)),
}
_PART = re.compile(
    r"\s*([0-9]+(?:\.[0-9]+)?)\s*(?:"
    + "|".join(f"(?P<{unit}>{spellings})" for unit, (spellings, _) in _UNITS.items())
    + r")(?![a-z])\s*"
)
_NUMBER = re.compile(r"\s*[0-9]+(?:\.[0-9]+)?\s*")
_COMMA_OF_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_BILLIONTH, _NANOSECOND = Decimal("1e-9"), 1e-9
_CONTEXT_OF_THREE, _LARGE = Context(prec=3, rounding=ROUND_HALF_EVEN), Decimal("99.995")
# Values from each limit upward are divided by this scale and get this prefix.
_PREFIXES = ((999.5e9, 1e12, "T"), (999.5e6, 1e9, "G"), (999.5e3, 1e6, "M"), (0, 1e3, "k"))
# Times below each limit, in seconds, are multiplied by this factor and shown in this unit.
TIME_UNITS = (
    (0.9995e-3, 1e6, "µs"),
    (0.9995, 1e3, "ms"),
    (120, 1, "s"),
    (7200, 1 / 60, "min"),
    (120 * 3600, 1 / 3600, "h"),
    (2 * 365.25 * 86_400, 1 / 86_400, "days"),
    (math.inf, 1 / (365.25 * 86_400), "years"),
)
# Larger numbers are typing errors, and would overflow as times or amounts.
_LARGEST = Decimal("1e30")
# A century: longer durations are typing errors, and later products stay far from overflow.
MAX_DURATION_SECONDS = Decimal(100 * 366 * 86_400)
# Large clouds change their price lists a few times a year: an older price may be out of date.
FRESH, _YEAR_DAYS = dt.timedelta(days=60), 365


def parse_duration_seconds(text: str, name: str = "duration") -> Decimal:
    """Parse a duration such as ``428s``, ``2h``, ``1h30m``, ``7 min``, ``2hours`` or ``428``.

    Returns seconds. A number without a unit counts as seconds. Raises InputError for other text,
    for zero and for more than a century, with ``name`` at the start of the message.
    """
    if _NUMBER.fullmatch(text):
        text = f"{text.strip()}s"
    parts = [(match[1], str(match.lastgroup)) for match in _PART.finditer(text)]
    units = [unit for _, unit in parts]
    if not (parts and not _PART.sub("", text) and len(set(units)) == len(units)):
        raise InputError(
            f"{name}: expected a number of seconds, or numbers with a unit, such as 90m, 2h or "
            f"1h30m, got {text!r:.80}"
        )
    with localcontext(_CONTEXT):
        lengths = (Decimal(number) * _UNITS[unit][1] for number, unit in parts)
        seconds = sum(lengths, Decimal(0))
    if not 0 < seconds <= MAX_DURATION_SECONDS:
        raise InputError(f"{name}: expected more than 0 and at most 100 years, got {text!r:.80}")
    return seconds


def parse_decimal(text: str, name: str) -> Decimal:
    """Parse a text as a Decimal of at most 1e30.

    Raises InputError for other text, with ``name`` at the start of the message.
    """
    try:
        with localcontext(_CONTEXT):
            value = Decimal(text)
    except InvalidOperation:
        raise InputError(f"{name}: expected a decimal number, got {text!r:.80}") from None
    if not value.is_finite():
        raise InputError(f"{name}: expected a finite number, got {text!r}")
    if value.copy_abs() > _LARGEST:
        raise InputError(f"{name}: expected a number of at most {_LARGEST:.0e}, got {text!r:.80}")
    return value


def parse_count(text: str, name: str) -> Decimal:
    """Parse a whole number above 0 such as ``10M``, ``2k``, ``14.8T`` or ``500,000``.

    Raises InputError for other text, with ``name`` at the start of the message. A comma is valid
    only between groups of three digits, as 1,5M may mean 1.5M.
    """
    digits = _COMMA_OF_THOUSANDS.sub("", text.strip())
    power = {"k": 3, "M": 6, "G": 9, "B": 9, "T": 12}.get(digits[-1:], 0)
    value = parse_decimal(digits[:-1] if power else digits, name).scaleb(power, _CONTEXT)
    if not 0 < value <= _LARGEST or value != value.to_integral_value():
        raise InputError(
            f"{name}: expected a whole number above 0 and at most {_LARGEST:.0e}, such as "
            f"10M, got {text!r:.80}"
        )
    return value


def parse_share(text: str, name: str) -> Decimal:
    """Parse a fraction such as ``0.3`` or ``30%``.

    Raises InputError for other text, with ``name`` at the start of the message.
    """
    number, percent, rest = text.partition("%")
    if not percent or rest.strip():
        return parse_decimal(text, name)
    return parse_decimal(number.strip(), name).scaleb(-2, _CONTEXT)


def plain(value: Decimal) -> str:
    """Format a value with all its decimal digits, without exponent or trailing zeros."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def render_count(number: int | Decimal, noun: str) -> str:
    """Format a number with its noun, in the plural unless the number is 1, such as "2 runs"."""
    digits = plain(number) if isinstance(number, Decimal) else f"{number:,}"
    return f"{digits} {noun}{'' if number == 1 else 's'}"


def render_some(names: Iterable[str], most: int) -> str:
    """Join the first ``most`` names, and say how many more there are: "a, b and 3 more"."""
    listed = [*names]
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def either(names: Sequence[str]) -> str:
    """Join names, such as "A", "A or B" and "A, B or C"; "" for no names."""
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def money(amount: Decimal, currency: str = "USD", places: int | None = None) -> str:
    """Format an amount of money for people, rounded to ``places`` decimals.

    Without ``places``, an amount of at least 1 has two decimals, and a smaller amount has two
    significant digits. An amount below a billionth is "under $0.000000001".
    """
    if places is None and 0 < amount.copy_abs() < _BILLIONTH:
        return f"under {symbol(currency)}{_BILLIONTH:f}"
    sign = "-" if amount < 0 else ""
    return f"{sign}{symbol(currency)}{_rounded(amount.copy_abs(), places)}"


def symbol(currency: str) -> str:
    """The sign of a currency, such as "$"; for a currency without a sign, its code and a space."""
    return {"USD": "$", "EUR": "€", "GBP": "£"}.get(currency, f"{currency} ")


def money_range(low: Decimal, high: Decimal, currency: str = "USD") -> str:
    """Format a range of amounts as `money_about` does; equal ends give one amount."""
    return " to ".join(dict.fromkeys(money_about(end, currency) for end in (low, high)))


def money_about(amount: Decimal, currency: str = "USD") -> str:
    """Format an amount of money: three significant digits from 100 upwards, cents below."""
    if amount.copy_abs() < _LARGE:
        return money(amount, currency)
    return money(_CONTEXT_OF_THREE.plus(amount), currency, 0)


def significant_places(amount: Decimal, digits: int) -> int:
    """Number of decimals, at least two, that show ``digits`` significant digits of ``amount``."""
    # Rounding may carry: 0.0996 has the two significant digits 0.10.
    rounded_amount = Context(prec=digits, rounding=ROUND_HALF_EVEN).plus(amount)
    return 2 if amount == 0 else max(2, digits - 1 - rounded_amount.adjusted())


def _rounded(size: Decimal, places: int | None) -> str:
    if places is None:
        places = 2 if size >= 1 else significant_places(size, 2)
    return f"{size.quantize(Decimal((0, (1,), -places)), context=_CONTEXT):,f}"


def seconds(value: float) -> str:
    """Format a time in seconds with three significant digits and a suitable unit, such as ms."""
    if 0 < value < _NANOSECOND:
        return "under 1 ns"
    scale, unit = next((scale, unit) for limit, scale, unit in TIME_UNITS if value < limit)
    return f"{rounded(value * scale)} {unit}"


def rounded(value: float | Decimal, digits: int = 3) -> str:
    """Format a number with at most ``digits`` significant digits, without a power of ten."""
    return f"{Decimal(f'{float(value):.{digits}g}'):,f}"


def prefixed(value: float, unit: str) -> str:
    """Format a quantity with three significant digits and a decimal prefix, such as "1.5 GB"."""
    scale, prefix = next((scale, prefix) for limit, scale, prefix in _PREFIXES if value >= limit)
    return f"{rounded(value / scale)} {prefix}{unit}"


def scientific(value: float) -> str:
    """Format a number with three digits and a power of ten, such as 8.63e10.

    Papers write counts of operations in this form.
    """
    digits, _, power = f"{value:.2e}".partition("e")
    return f"{digits}e{int(power)}"


def share(part: Decimal | float, sign: str = "", decimals: int | None = None) -> str:
    """Format a share, such as 0.25, in percent; with the ``sign`` "+", a positive share has it.

    Without ``decimals``, the percentage is whole, or has one significant digit below 1 %.
    """
    percent = float(part) * 100
    whole = "0f" if abs(percent) >= 1 else "1g"
    return f"{percent:{sign}.{whole if decimals is None else f'{decimals}f'}} %"


def thousands(value: Decimal, unit: str) -> str:
    """Format a quantity in thousands of ``unit`` with three significant digits, such as "1.5 kg".

    Below a thousand, the prefix is left out: "500 g".
    """
    return f"{rounded(value)} k{unit}" if value >= 1 else f"{rounded(float(value) * 1000)} {unit}"


def memory(size_bytes: float) -> str:
    """Format a number of bytes for people; MiB and GiB have one decimal."""
    for limit, unit in ((2**30, "GiB"), (2**20, "MiB")):
        if size_bytes >= limit:
            return f"{size_bytes / limit:,.1f} {unit}"
    return f"{size_bytes / 2**10:,.0f} KiB"


def render_precision(precision: str) -> str:
    """The words for a precision in text for readers, such as "mixed precision" for ``mixed``."""
    return "mixed precision" if precision == "mixed" else precision


def render_runtime(runtime: str) -> str:
    """The name of a pinned package in text for readers.

    For example, onnxruntime-gpu==1.31.1 becomes ONNX Runtime 1.31.1.
    """
    package, _, version = runtime.partition("==")
    name = "ONNX Runtime" if package in {"onnxruntime", "onnxruntime-gpu"} else package
    return f"{name} {version}"


def render_software(software: str, precision: str) -> str:
    """The names of software and precision, separated by a comma; empty if both are empty."""
    return ", ".join(filter(None, (software, render_precision(precision))))


def today() -> dt.date:
    """Today's date in UTC, or the date in SOURCE_DATE_EPOCH, for reproducible builds.

    Raises InputError if that variable is no number of seconds since 1970.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if not epoch:
        return dt.datetime.now(dt.UTC).date()
    try:
        return dt.datetime.fromtimestamp(int(epoch), dt.UTC).date()
    except (ValueError, OverflowError, OSError):
        raise InputError(
            f"SOURCE_DATE_EPOCH: expected a number of seconds since 1970, got {epoch!r:.80}"
        ) from None


def price_age(day: dt.date) -> str:
    """The age of a price from ``day``, such as ``61 days old``; empty for at most 60 days."""
    if today() - day <= FRESH:
        return ""
    days = (today() - day).days
    return f"{days} days old" if days < 2 * _YEAR_DAYS else f"{days // _YEAR_DAYS} years old"
