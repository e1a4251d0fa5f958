"""The base class of all specs, and the types of their fields.

Nothing is converted from text, so ``amount = "0.90"`` is a fault, not a number. A validator raises
a ValueError that states only the demand ("should be …"). ``findings`` adds the key and the value.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from decimal import Decimal
from typing import Annotated, Any, Generic, Self, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    PrivateAttr,
    ValidationInfo,
    field_validator,
)
from pydantic_core.core_schema import no_info_after_validator_function

from epochcost.specs.wording import KeyPath, describe
from epochcost.units import price_age, today

ItemT = TypeVar("ItemT")
# No quantity of a spec (bytes, dollars, examples) is larger; products of two do not overflow.
LARGEST = 10**15
# No amount of a spec is smaller; it does not vanish when money is rounded to 1e-18.
SMALLEST = Decimal("1e-15")
# No source of a spec is older.
EARLIEST_YEAR = 1950


def key(description: str, *examples: Any, default: Any = ..., **bounds: Any) -> Any:
    """Declare a key, required unless it has a default; ``bounds`` go to pydantic's ``Field``."""
    return Field(default, description=description, examples=list(examples) or None, **bounds)


def optional(description: str, *examples: Any, **bounds: Any) -> Any:
    """Declare a key of a spec that may be missing, with the default value None."""
    return key(description, *examples, default=None, **bounds)


class Spec(BaseModel):
    """A read-only table of a TOML file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _decimal(value: Any) -> Any:
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _not_vanishing(value: Decimal) -> Decimal:
    if value and abs(value) < SMALLEST:
        raise ValueError(f"should differ from 0 by at least {SMALLEST}")
    return value


def _from_list(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _checked(check: Callable[[str], str], pattern: str) -> GetPydanticSchema:
    """A validator that applies ``check`` to a text; the JSON Schema for editors has ``pattern``."""
    return GetPydanticSchema(
        lambda kind, handler: no_info_after_validator_function(check, handler(kind)),
        lambda schema, handler: {**handler(schema), "pattern": pattern},
    )


def matching(pattern: str, expected: str) -> GetPydanticSchema:
    """Require a whole value to match the regex ``pattern``; errors describe it as ``expected``."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"should be {expected}")
        return text

    return _checked(check, f"^({pattern})$")


def _legible(text: str) -> str:
    if not text.strip():
        raise ValueError("should not be empty")
    if not text.replace("\n", "").replace("\t", "").isprintable():
        raise ValueError("should contain no control characters")
    # "us-east-1 " would be another region than "us-east-1".
    if text != text.strip(" \t"):
        raise ValueError("should have no space at its start or end")
    return text


_LEGIBLE = _checked(_legible, r"\S")


def _begun(day: dt.date) -> dt.date:
    # Not units.today(): SOURCE_DATE_EPOCH may be older than the specs of a reproducible build.
    today = dt.datetime.now(dt.UTC).date()
    if day.year < EARLIEST_YEAR:
        raise ValueError(f"should be in {EARLIEST_YEAR} or later")
    # East of UTC, tomorrow has begun.
    if day > today + dt.timedelta(days=1):
        raise ValueError(f"should not be later than today, {today}")
    return day


# National currencies in ISO 4217 as of 2025, without funds, metals and test codes.
_CODES = """
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD
    CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP
    GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD
    KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN
    NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP
    SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES
    VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
    """
ISO_4217 = frozenset(_CODES.split())


def _iso_code(code: str) -> str:
    if code not in ISO_4217:
        raise ValueError("should be a currency of ISO 4217, such as USD")
    return code


def _percentage(value: Decimal) -> Decimal:
    if 0 < value < 1:
        raise ValueError("should be in percent, 0 or at least 1")
    return value


def distinct(of: Callable[[ItemT], Hashable]) -> AfterValidator:
    """Make a validator that refuses an array if ``of`` returns the same value for two items."""

    def check(items: Sequence[ItemT]) -> Sequence[ItemT]:
        earlier: set[Hashable] = set()
        for name in map(of, items):
            if name in earlier:
                raise ValueError(f"should name each item once, got {describe(name)} twice")
            earlier.add(name)
        return items

    return AfterValidator(check)


# A package's version, such as 1.20.1; it becomes the name of a folder.
RELEASE = r"[0-9]{1,6}\.[0-9]{1,6}\.[0-9]{1,6}"
FROM_LIST = BeforeValidator(_from_list)
DISTINCT = distinct(lambda item: item)
# A TOML array, read as a tuple. ``Choices`` has at least one item, and no item twice.
Array = Annotated[tuple[ItemT, ...], FROM_LIST]
Choices = Annotated[tuple[ItemT, ...], FROM_LIST, Field(min_length=1), DISTINCT]
Identifier = Annotated[
    str,
    matching(
        r"[a-z0-9][a-z0-9._-]{0,79}",
        "an id: lower-case letters, digits, dots, hyphens and underscores, at most 80",
    ),
]
TableName = Annotated[
    str, matching(r"[a-z0-9][a-z0-9._-]{0,79}\.csv", "the name of a .csv file in the spec's folder")
]
Text = Annotated[str, Field(max_length=2000), _LEGIBLE]
Source = Annotated[
    str,
    key(
        "Source of the numbers: a repository with its commit and path, an address, "
        "or an article with its date.",
        min_length=3,
        max_length=2000,
    ),
    _LEGIBLE,
]
# A day that has begun; one day more is allowed for time zones.
PastDay = Annotated[dt.date, AfterValidator(_begun)]
PastYear = Annotated[
    int,
    Field(ge=EARLIEST_YEAR, le=2100),
    AfterValidator(lambda year: _begun(dt.date(year, 1, 1)).year),
]
Number = Annotated[Decimal, BeforeValidator(_decimal), AfterValidator(_not_vanishing)]
Bounded = Annotated[Number, Field(ge=-LARGEST, le=LARGEST)]
Positive = Annotated[Number, Field(gt=0, le=LARGEST)]
NonNegative = Annotated[Number, Field(ge=0, le=LARGEST)]
Share = Annotated[Number, Field(ge=0, le=1)]
# A share such as 0.9, written where 90 is meant, is refused.
Percentage = Annotated[Number, Field(ge=0, le=100), AfterValidator(_percentage)]
# Power usage effectiveness; 150 for 1.5 is refused.
Pue = Annotated[Positive, Field(ge=1, le=10)]
PositiveInt = Annotated[int, Field(gt=0, le=LARGEST)]
# A time in a trial: 11 days at most in seconds.
TrialTime = Annotated[Positive, Field(le=1_000_000)]
Currency = Annotated[str, _checked(_iso_code, "^([A-Z]{3})$")]


class NamedSpec(Spec):
    """A spec that fills a whole TOML file and has an id."""

    id: Identifier = key("The name by which specs, commands and files refer to this spec.")
    notes: Text | None = optional("Further remarks for readers.")


class SourcedSpec(NamedSpec):
    """A spec with numbers of a source.

    ``unconfirmed`` has key paths such as ``training.optimizer.epsilon``, without positions in
    arrays.
    """

    source: Source
    unconfirmed: Annotated[Array[Text], DISTINCT] = key(
        "Keys of this spec whose values we could not check in a source.", default=()
    )


SpecT = TypeVar("SpecT", bound=NamedSpec)


def ordered_keys_of(spec: type[Spec], path: KeyPath = ()) -> tuple[str, ...]:
    """The keys that a spec's table at ``path`` may have, in the order of the schema.

    Empty if there is no such table. Positions in arrays are ignored. In some tables, the key
    ``name`` decides which other keys exist. ``path`` may end with its value: ``("training",
    "optimizer", "adam")``. Otherwise, the result has the keys for all values.
    """
    tables: Sequence[type[Spec]] = [spec]
    for part in path:
        tables = _within(tables, part) if isinstance(part, str) else tables
    return tuple(dict.fromkeys(key for table in tables for key in table.model_fields))


def _within(tables: Sequence[type[Spec]], part: str) -> Sequence[type[Spec]]:
    fields = [table.model_fields[part] for table in tables if part in table.model_fields]
    if fields:
        return [table for field in fields for table in _tables_in(field.annotation)]
    return [table for table in tables if _is_variant(table, part)] or tables


def _is_variant(table: type[Spec], name: str) -> bool:
    return "name" in table.model_fields and name in get_args(table.model_fields["name"].annotation)


def _tables_in(annotation: Any) -> Iterator[type[Spec]]:
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        yield annotation
    for argument in get_args(annotation):
        yield from _tables_in(argument)


class PricedSpec(SourcedSpec):
    """A price, and the reason why it is implausible (``doubt``) if other prices contradict it."""

    provider: Text = key("Company that offers this price.", "AWS EC2")
    currency: Currency = key("Currency of all amounts: its code in ISO 4217.", "USD", default="USD")
    as_of: PastDay = key("The day on which the source states the price.", "2026-11-01")
    valid_until: dt.date | None = optional("Last day on which the price is valid.", "2017-10-01")
    _doubt: str = PrivateAttr("")

    @field_validator("valid_until")
    @classmethod
    def _not_before_its_day(cls, end: dt.date | None, info: ValidationInfo) -> dt.date | None:
        day = info.data.get("as_of")
        if end is not None and day is not None and end < day:
            raise ValueError(f"should be on or after as_of, {day}")
        return end

    @property
    def doubt(self) -> str:
        """The reason why the price is implausible; empty if no other price contradicts it."""
        return self._doubt

    @property
    def age(self) -> str:
        """The age of a price older than 60 days; empty for newer prices."""
        return price_age(self.as_of)

    @property
    def flaw(self) -> str:
        """Why nobody can buy at this price today; empty if it is offered and plausible."""
        if self.valid_until is not None and self.valid_until < today():
            return "no longer offered"
        return "doubted, see `epochcost check`" if self.doubt else ""

    def doubted(self, reason: str) -> Self:
        """A copy of the price that is marked as implausible for the ``reason``."""
        price = self.model_copy()
        price._doubt = reason
        return price


ValueT = TypeVar("ValueT")


class Identity(Generic[ValueT]):
    """A cache key that compares a frozen value by identity, because hashing a spec takes too long.

    The key keeps the value alive, so no other value gets the same identity.
    """

    __slots__ = ("value",)

    def __init__(self, value: ValueT) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, operand: object) -> bool:
        return isinstance(operand, Identity) and self.value is operand.value
