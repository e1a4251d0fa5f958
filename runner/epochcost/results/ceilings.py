"""The measured peak rates ("ceilings") of a machine in multiplying matrices and copying memory.

A new measurement replaces the file ``<hardware>/ceilings/<provider>-<host>.json``; the names for
GPUs other than the first also have the GPU's number.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from epochcost.results.environment import Environment
from epochcost.results.fields import Count, FiniteSeconds, Former, NonNegativeInt, Record, Timestamp
from epochcost.results.store import HostSidecar, load_sidecars
from epochcost.specs.study import Precision, Provider

# History of CEILINGS_VERSION:
# 1  first form.
# 2  Added: small pieces of work that were timed for predictions. They are ignored today.
# 3  Added: the precision of a product, and peak rates of GPUs. Older files have rates of fp32 only.
# 4  Added: the number of the GPU. Older files do not say which GPU they are of.
CEILINGS_VERSION = 4
_FEWEST_TIMES = 3
_Times = Annotated[tuple[FiniteSeconds, ...], Field(min_length=_FEWEST_TIMES)]


class MeasuredRate(Record):
    """Operations or bytes a second: ``low`` from the slowest time, ``high`` from the fastest."""

    low: float
    median: float
    high: float


class Ceiling(Record):
    """Times of products of square matrices and of copying memory; ``threads`` is 1 for a GPU."""

    threads: Count
    precision: Precision = "fp32"
    matrix_side: Count
    product_seconds: _Times
    copied_bytes: Count
    copy_seconds: _Times

    @property
    def flops(self) -> MeasuredRate:
        """FLOP/s of the matrix product, which needs 2 · side³ operations."""
        return _rate(2 * self.matrix_side**3, self.product_seconds)

    @property
    def copy_bytes(self) -> MeasuredRate:
        """Bytes per second of the memory copy, counting reads and writes."""
        return _rate(2 * self.copied_bytes, self.copy_seconds)


class Ceilings(HostSidecar):
    """Peak rates of a host in multiplying matrices and copying memory, as measured there.

    ``device`` is CUDA's number of the GPU, 0 for the CPU. For each precision, threads ascend.
    ``contradictions`` are differences between host and spec.
    """

    folder: ClassVar[str] = "ceilings"
    described: ClassVar[str] = "the ceilings of a machine"
    ceilings_version: Annotated[int, Field(ge=1, le=CEILINGS_VERSION)]
    provider: Provider
    device: NonNegativeInt = 0
    measured_at: Timestamp
    ceilings: tuple[Ceiling, ...]
    anchors: Former = None
    contradictions: tuple[str, ...] = ()

    @property
    def work(self) -> str:
        """The first part of this record's file name: execution provider and number of the GPU."""
        return f"{self.provider}{self.device or ''}"

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Ceilings:
        if self.provider == "cpu" and not self.ceilings:
            raise ValueError("ceilings of a CPU should not be empty")
        for precision in {ceiling.precision for ceiling in self.ceilings} | {"fp32"}:
            threads = [each.threads for each in self.ceilings if each.precision == precision]
            if self.ceilings and not threads:
                raise ValueError("ceilings should include fp32")
            if threads != sorted(set(threads)):
                raise ValueError("ceilings should be of ascending numbers of threads")
        return self


def find_ceilings(
    folder: Path, hardware: str, provider: Provider, environment: Environment, device: int = 0
) -> Ceilings | None:
    """Stored peak rates of the host and runtime in ``environment``; None if missing or damaged."""
    key = (hardware, provider, device, environment.fingerprint, environment.runtime)
    for record in load_sidecars(folder, Ceilings).records.values():
        host = record.environment.fingerprint, record.environment.runtime
        if (record.hardware, record.provider, record.device, *host) == key:
            return record
    return None


def _rate(amount: int, seconds: Sequence[float]) -> MeasuredRate:
    low, mid, high = max(seconds), median(seconds), min(seconds)
    return MeasuredRate(low=amount / low, median=amount / mid, high=amount / high)
