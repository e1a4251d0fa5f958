"""A trial: one piece of work to be timed, and the identity that says when two are the same."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

from epochcost.specs.study import Mode, Provider
from epochcost.units import plain

Precision = Literal["fp32"]
# 12 and 12.0 are the same budget and give the same id.
Canonical = Annotated[Decimal, AfterValidator(lambda value: Decimal(plain(value)))]


class Trial(BaseModel):
    """One model, mode, provider and batch size, and everything else that defines the work.

    ``graph_sha256`` is of the ONNX file, ``spec_sha256`` of what the model's spec says about the
    work (``plan.digests.work_sha256``), ``runtime`` the package and version that executes it,
    ``producer`` the version of epochcost (its gradients are part of the work). ``threads`` 0 means
    all cores.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    mode: Mode
    provider: Provider
    precision: Precision = "fp32"
    batch_size: int
    threads: int
    seed: int
    runtime: str
    producer: str
    graph_sha256: str
    spec_sha256: str
    relative_half_width: Canonical
    minimum_samples: int
    budget_seconds: Canonical

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits: the same for the same work on any machine, on any day."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """What a progress display calls the trial."""
        return f"{self.model} {self.mode} {self.provider} batch {self.batch_size}"
