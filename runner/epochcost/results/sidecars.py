"""Records of the end of a sweep over batch sizes, and of the price of a trial's machine.

The files are ``<hardware>/limits/<model>-<mode>-<provider>-<sweep>-<host>.json`` and
``<hardware>/payments/<trial>.json``.

History of LIMIT_VERSION and of PAYMENT_VERSION: 1 is the first form.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from epochcost.plan.sweep import Cause, FailedSize
from epochcost.plan.trial import Trial
from epochcost.results.fields import Count, FiniteSeconds, Former, HexDigits, Timestamp
from epochcost.results.store import ID_DIGITS, HostSidecar, Sidecar

LIMIT_VERSION = PAYMENT_VERSION = 1
Amount = Annotated[Decimal, Field(ge=0, lt=10**9, allow_inf_nan=False)]


class BatchLimit(HostSidecar):
    """The end of a sweep on one machine; ``trial`` is the trial of the smallest batch size.

    ``sizes`` are those that ran, ascending. ``reason`` tells people why, and which memory was full.
    """

    folder: ClassVar[str] = "limits"
    described: ClassVar[str] = "the end of a sweep"
    limit_version: Literal[1]
    sweep_id: HexDigits
    trial: Trial
    ended_at: Timestamp
    cause: Cause
    reason: str
    sizes: tuple[Count, ...]
    failed: tuple[FailedSize, ...] = ()
    needed_bytes: Former = None
    available_bytes: Former = None

    @property
    def work(self) -> str:
        """The file name up to the host: model, mode, provider, and first digits of ``sweep_id``."""
        work = f"{self.trial.model}-{self.trial.mode}-{self.trial.provider}"
        return f"{work}-{self.sweep_id[:ID_DIGITS]}"

    @property
    def largest_that_ran(self) -> int | None:
        """The largest batch size that ran; None if no size ran."""
        return self.sizes[-1] if self.sizes else None

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> BatchLimit:
        if list(self.sizes) != sorted(set(self.sizes)):
            raise ValueError("sizes should ascend")
        if self.cause in {"memory", "failure"} and not self.failed:
            raise ValueError(f"a sweep that {self.cause} ended should have a size that failed")
        if self.sweep_id != self.trial.model_copy(update={"batch_size": 0}).id:
            raise ValueError("sweep_id should be that of the trial: the file was edited")
        return self


class Payment(Sidecar):
    """The hourly price of a machine while `epochcost launch` ran a trial or sweep on it.

    ``hourly`` is from the spec ``price`` or, if ``engine_price``, from the tool that started the
    machine, such as SkyPilot. The trial or sweep used the machine for ``seconds``.
    ``startup_seconds`` is the time from the request for the machine to the first step, None if
    unknown.
    """

    folder: ClassVar[str] = "payments"
    described: ClassVar[str] = "the price that was paid for a trial"
    payment_version: Literal[1]
    trial_id: HexDigits
    target: str
    price: str
    hourly: Amount
    currency: str
    engine_price: bool
    paid_at: Timestamp
    seconds: FiniteSeconds
    startup_seconds: FiniteSeconds | None

    @property
    def work(self) -> str:
        """The name of the file without its suffix: the id of the trial or sweep."""
        return self.trial_id
