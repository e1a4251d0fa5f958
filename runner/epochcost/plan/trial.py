"""A trial: one piece of work to be timed, and the identity that says when two are the same."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from functools import cached_property
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

from epochcost.plan.load import COMPLIANT_SECONDS, Load
from epochcost.specs.study import (
    GraphOptimization,
    InputCopy,
    Mode,
    Precision,
    Provider,
    Quantization,
    Scenario,
)
from epochcost.units import plain

# Named here once a field is added: left out of the identity where it says what was always so.
_ADDED = (
    "load",
    "vcpus",
    "quantization",
    "graph_optimization",
    "spinning",
    "denormals_as_zero",
    "input_copy",
    "cuda_graph",
    "device",
    "device_memory_limit_bytes",
    "other_runtime",
)
# 12 and 12.0 are the same budget and give the same id.
Canonical = Annotated[Decimal, AfterValidator(lambda value: Decimal(plain(value)))]


class Trial(BaseModel):
    """One model, mode, provider and batch size, and everything else that defines the work.

    ``graph_sha256`` is of the ONNX file, ``spec_sha256`` of what the model's spec says about the
    work (``plan.digests.work_sha256``), ``runtime`` the package and version that executes it,
    ``producer`` the version of epochcost (its gradients are part of the work). ``threads`` 0 means
    all cores. ``load`` is what LoadGen is asked for, None for full batches one after the other;
    ``batch_size`` is then the most that one run of the model takes. ``vcpus`` is how many CPUs the
    worker is pinned to, None for all. ``quantization`` is of int8, None as the graph suggests.
    ``device``, ``cuda_graph`` and ``device_memory_limit_bytes`` are of the CUDA provider.
    ``other_runtime``: the study asked for a runtime that is not the installed one.
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
    load: Load | None = None
    vcpus: int | None = None
    quantization: Quantization | None = None
    graph_optimization: GraphOptimization = "all"
    spinning: bool = True
    denormals_as_zero: bool = False
    input_copy: InputCopy = "included"
    cuda_graph: bool = False
    device: int = 0
    device_memory_limit_bytes: int | None = None
    other_runtime: bool = False

    @property
    def scenario(self) -> Scenario:
        """How inference is loaded; training knows full batches only."""
        return "batch" if self.load is None else self.load.scenario

    @property
    def expected_seconds(self) -> Decimal:
        """About how long the timing takes: the budget, or MLPerf's duration."""
        if self.load is not None and self.load.compliant:
            return max(self.budget_seconds, Decimal(COMPLIANT_SECONDS))
        return self.budget_seconds

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits: the same for the same work on any machine, on any day."""
        fields = type(self).model_fields
        unsaid = {name for name in _ADDED if getattr(self, name) == fields[name].default}
        return hashlib.sha256(self.model_dump_json(exclude=unsaid).encode()).hexdigest()[:16]

    @cached_property
    def variant(self) -> str:
        """What sets the trial apart from the plain one of its work, in words; empty for that one.

        The installed runtime is plain whatever its version: a newer one replaces it.
        """
        said = {
            self.precision: self.precision != "fp32",
            f"{self.quantization} quantisation": self.quantization is not None,
            f"{self.vcpus} vCPU": self.vcpus is not None,
            f"optimisation {self.graph_optimization}": self.graph_optimization != "all",
            "no spinning": not self.spinning,
            "denormals as zero": self.denormals_as_zero,
            "copy excluded": self.input_copy == "excluded",
            "CUDA graph": self.cuda_graph,
            f"GPU {self.device}": self.device != 0,
            "memory limit": self.device_memory_limit_bytes is not None,
            self.runtime.replace("==", " "): self.other_runtime,
        }
        return ", ".join(words for words, holds in said.items() if holds)

    @property
    def title(self) -> str:
        """What a progress display calls the trial."""
        done = self.mode if self.load is None else self.load.title
        plain_title = f"{self.model} {done} {self.provider} batch {self.batch_size}"
        return f"{plain_title}, {self.variant}" if self.variant else plain_title
