"""Types for values of stored records; their bounds keep later sums and dates from overflowing."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from typing import Annotated, TypeVar

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from epochcost.specs.wording import printable

# From a nanosecond, the step of the finest clock, to thirty years.
FiniteSeconds = Annotated[float, Field(ge=1e-9, le=1e9, allow_inf_nan=False)]
NonNegativeInt = Annotated[int, Field(ge=0, lt=2**63)]
Count = Annotated[int, Field(gt=0, lt=2**63)]
PositiveNumber = Annotated[float, Field(ge=1e-9, le=1e18, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
# The range of fp32.
FiniteLoss = Annotated[float, Field(ge=-4e38, le=4e38, allow_inf_nan=False)]
# Memory of one or more processes; an interpreter alone needs more than a mebibyte.
ProcessBytes = Annotated[int, Field(ge=2**20, lt=2**63)]
Timestamp = Annotated[
    AwareDatetime,
    Field(ge=dt.datetime(1970, 1, 1, tzinfo=dt.UTC), lt=dt.datetime(2200, 1, 1, tzinfo=dt.UTC)),
]

# The id of a commit.
Revision = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
# The id of a trial or a sweep, or the fingerprint of a host.
HexDigits = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
# ONNX Runtime's name of an operator or an execution provider.
Name = Annotated[str, Field(pattern=r"^[A-Za-z]\w{0,99}$")]


class Record(BaseModel):
    """A read-only JSON object in a stored file; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# Type of a key that only earlier versions wrote; its value is ignored.
Former = Annotated[None, BeforeValidator(lambda _: None), Field(exclude=True, repr=False)]
RecordT = TypeVar("RecordT", bound=Record)
# Fields of a trial that are no tables in a file: their keys are in the trial's table.
_FLAT = {("trial", "session"), ("trial", "work")}


def read_record(kind: type[RecordT], data: bytes) -> RecordT:
    """Parse strictly ("2" and 2.0 are no integers); raises ValidationError for invalid records."""
    return kind.model_validate_json(data, strict=True)


def first_error(error: ValidationError) -> str:
    """The key and the message of the first error in a file, as one line of text."""
    first = error.errors(include_url=False)[0]
    parts = pairwise(("", *map(str, first["loc"])))
    key = ".".join(part for table, part in parts if (table, part) not in _FLAT) or "document"
    return printable(f"{key:.200}: {first['msg']:.400}")
