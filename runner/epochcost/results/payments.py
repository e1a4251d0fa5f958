"""Record of the price that a launch paid for the machine of a result, and its file.

A record is stored in ``<hardware>/payments/<trial>.json``, a folder that readers of results skip.

History of PAYMENT_VERSION:
1  first form.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from epochcost.results.fields import FiniteSeconds, HexDigits, Timestamp
from epochcost.results.store import Sidecar

PAYMENT_VERSION = 1
Amount = Annotated[Decimal, Field(ge=0, lt=10**9, allow_inf_nan=False)]


class Payment(Sidecar):
    """The hourly price of a machine while a trial or sweep ran there.

    ``engine_price`` says whether the engine quoted it; else it is that of the spec ``price``.
    ``seconds`` is the paid time of the job; ``startup_seconds`` is the time from the request of the
    machine to the first step, None if the machine was up already.
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
        """The name of the file: the id of the trial or sweep."""
        return self.trial_id
