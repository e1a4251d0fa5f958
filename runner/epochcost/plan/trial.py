"""A trial: a piece of work to be timed. Trials of equal work have equal ids."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from epochcost.plan.work import STEPS, STORED_KEYS, CanonicalDecimal, Work, tagged
from epochcost.specs.study import Mode, Precision, Provider

# Keys of a trial's JSON, in this order; its id is a digest of their values.
_ALWAYS = (
    "model",
    "mode",
    "provider",
    "precision",
    "batch_size",
    "threads",
    "seed",
    "runtime",
    "producer",
    "graph_sha256",
    "spec_sha256",
    "relative_half_width",
    "minimum_samples",
    "budget_seconds",
)
# Fields added later, with the value that older trials had; at this value they do not change the id.
_ADDED: Mapping[str, object] = {
    "load": None,
    "vcpus": None,
    "cuda_graph": False,
    "device": 0,
    "device_memory_limit_bytes": None,
    "stored_weights": False,
    "phase": None,
    "requests": None,
}
# Settings that older versions stored, with the only value that is still valid.
_FORMER: Mapping[str, object] = {
    "quantization": None,
    "graph_optimization": "all",
    "spinning": True,
    "denormals_as_zero": False,
    "input_copy": "included",
    "other_runtime": False,
}
Count = Annotated[int, Field(ge=1, lt=2**53)]
Number = Annotated[int, Field(ge=0, lt=2**63)]


class SessionSettings(BaseModel):
    """Settings of ONNX Runtime; 0 threads means one thread for each core.

    ``tf32`` lets CUDA round factors of fp32 products. See ``specs.study.Cuda`` for the last three.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    threads: Number = 0
    tf32: bool = False
    cuda_graph: bool = False
    device: Number = 0
    device_memory_limit_bytes: Count | None = None


# A trial's JSON has these settings as its own keys; TF32 follows from the precision.
_OF_SESSION = tuple(name for name in SessionSettings.model_fields if name != "tf32")


class Trial(BaseModel):
    """A model, mode, provider and batch size, and everything else that defines the timed work.

    ``batch_size`` counts examples in a step, or sequences in a decoder's phase. Under LoadGen, it
    is the largest number of examples that the model gets at once. ``runtime`` is the package and
    version that executes the work (for requests, an engine), ``producer`` the version of epochcost.
    ``spec_sha256`` is from `plan.digests`. ``vcpus`` is None for all CPUs. If ``stored_weights``,
    parameters are constants of the graph. The id is a digest of all settings. As JSON, a trial is a
    flat table.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    mode: Mode
    provider: Provider
    precision: Precision = "fp32"
    batch_size: Count
    session: SessionSettings = SessionSettings()
    seed: Number
    runtime: str
    producer: str
    graph_sha256: str
    spec_sha256: str
    relative_half_width: CanonicalDecimal
    minimum_samples: Number
    budget_seconds: CanonicalDecimal
    work: Annotated[Work, Field(discriminator="kind")] = STEPS
    vcpus: Count | None = None
    stored_weights: bool = False

    @model_validator(mode="before")
    @classmethod
    def _with_session(cls, stored: Any) -> Any:
        if not isinstance(stored, Mapping) or isinstance(stored.get("session"), SessionSettings):
            return stored
        if "session" in stored or isinstance(stored.get("work"), Mapping):
            raise ValueError("should have the settings of session and work beside the rest")
        for name, value in _FORMER.items():
            if stored.get(name, value) != value:
                raise ValueError(f"{name} should be {value}, as in all trials of this version")
        session = {name: stored[name] for name in _OF_SESSION if name in stored}
        fields = {k: stored[k] for k in stored if k not in (*session, *_FORMER, *STORED_KEYS)}
        session["tf32"] = stored.get("precision") == "tf32"
        return {"work": tagged(stored), **fields, "session": session}

    @model_serializer(mode="wrap")
    def _flat(
        self, handler: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        parts = self.work.stored.items()
        work = {key: part.model_dump(mode=info.mode, exclude={"kind"}) for key, part in parts}
        flat = {**fields, **fields["session"], **dict.fromkeys(STORED_KEYS), **work}
        return {name: flat[name] for name in (*_ALWAYS, *_ADDED) if name in flat}

    @property
    def expected_seconds(self) -> Decimal:
        """Expected seconds to measure: the time budget, or the work's usual time if longer."""
        return max(self.budget_seconds, self.work.usual_seconds)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values, which computes its id and variant anew."""
        copied = super().model_copy(update=update, deep=deep)
        for name in ("id", "variant"):
            copied.__dict__.pop(name, None)
        return copied

    @cached_property
    def id(self) -> str:
        """Sixteen hexadecimal digits that are equal for equal work, on any machine and day."""
        fields = self.model_dump(mode="json")
        usual = {name for name, default in _ADDED.items() if fields.get(name) == default}
        counted = {name: value for name, value in fields.items() if name not in usual}
        text = json.dumps(counted, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def variant(self) -> str:
        """The settings that differ from the default settings, as text; empty for default settings.

        The text never names threads, the runtime's version or CUDA graphs. Reports treat results
        that differ only in version or CUDA graphs as repetitions.
        """
        session = self.session
        parts = {
            self.precision: self.precision != "fp32",
            f"{self.vcpus} vCPU": self.vcpus is not None,
            f"GPU {session.device}": session.device != 0,
            "memory limit": session.device_memory_limit_bytes is not None,
        }
        return ", ".join(part for part, holds in parts.items() if holds)

    @property
    def title(self) -> str:
        """The trial's name for people, in messages about progress."""
        plain_title = f"{self.model} {self.work.title or self.mode} {self.provider}"
        return f"{plain_title} batch {self.batch_size}{self.variant and ', '}{self.variant}"
