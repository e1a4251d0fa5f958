"""A trial: one piece of work to be timed, and the identity that says when two are the same. Pure.

Under LoadGen its load is a scenario of MLPerf Inference, from a study's and a model's spec; how
LoadGen is driven is left to ``measure.loadgen``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from epochcost.specs.decoder import Generation, PhaseName
from epochcost.specs.model import Inference
from epochcost.specs.requests import Requests
from epochcost.specs.study import (
    Mode,
    Precision,
    Provider,
    Quantization,
    Scenario,
    Study,
)
from epochcost.units import plain

LoadScenario = Literal["offline", "server"]
# How many times the bound of first tokens a run of requests lasts. A rate that is too high by a
# tenth is seen once the waiting has grown to the bound, which takes about ten times as long; near
# its capacity an engine's waiting goes on growing: one kept 4.5 requests a second for 20 s, and of
# 100 s no more than 3.9.
BOUNDS_LONG: Mapping[str, int] = MappingProxyType({"search": 10, "scored": 50, "share": 10})
# How many runs the committed results took until their rate was proved.
_USUAL_RUNS: Mapping[str, int] = MappingProxyType({"search": 6, "scored": 3})


def _decimal(value: Any) -> Any:
    """JSON has decimals as texts."""
    try:
        return Decimal(value) if isinstance(value, str) else value
    except InvalidOperation:
        raise ValueError("should be a decimal number") from None


# 12 and 12.0 are the same budget and give the same id; more digits nobody writes.
CanonicalDecimal = Annotated[
    Decimal,
    BeforeValidator(_decimal),
    Field(ge=0, le=1_000_000_000, max_digits=40, decimal_places=30),
    AfterValidator(lambda value: Decimal(plain(value))),
]


class Load(BaseModel):
    """One scenario and what defines it; what a scenario does not know is None.

    ``server_latency_ms`` bounds ``latency_percentile``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: LoadScenario
    # Part of every stored trial's identity.
    compliant: Literal[False] = False
    samples_per_query: Literal[1] = 1
    server_latency_ms: CanonicalDecimal | None = None
    latency_percentile: CanonicalDecimal | None = None
    maximum_delay_ms: CanonicalDecimal | None = None

    @property
    def lacks_bound(self) -> bool:
        """Whether this is a server of which nobody said how soon it must answer."""
        return self.scenario == "server" and self.server_latency_ms is None


def study_loads(study: Study, inference: Inference) -> Iterator[tuple[Load, int]]:
    """The study's scenarios under LoadGen, each with the most samples of one run of the model."""
    serving, asked = study.serving, study.inference_batch_sizes
    largest = max(inference.batch_sizes if asked is None or asked == "auto" else asked)
    most = serving.maximum_batch or largest
    if "offline" in study.scenarios:
        yield Load(scenario="offline"), most
    if "server" in study.scenarios:
        server = Load(
            scenario="server",
            server_latency_ms=serving.server_latency_ms or inference.server_latency_ms,
            latency_percentile=serving.latency_percentile,
            maximum_delay_ms=serving.maximum_delay_ms,
        )
        yield server, most


class Phase(BaseModel):
    """What one run of a decoder does: read prompts of ``tokens``, or continue as long a cache."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: PhaseName
    tokens: Annotated[int, Field(ge=1, lt=2**53)]

    @property
    def title(self) -> str:
        """The phase in words."""
        return f"prefill of {self.tokens}" if self.name == "prefill" else f"decode at {self.tokens}"

    @property
    def new_tokens(self) -> int:
        """Tokens of each sequence that one run takes in."""
        return self.tokens if self.name == "prefill" else 1

    @property
    def length(self) -> int:
        """Tokens of each sequence in the cache after it."""
        return self.tokens if self.name == "prefill" else self.tokens + 1


def phases(generation: Generation) -> Iterator[tuple[Phase, int]]:
    """Each phase that is asked for, with the number of sequences."""
    for batch_size in generation.batch_sizes:
        for tokens in generation.prompts:
            yield Phase(name="prefill", tokens=tokens), batch_size
        for tokens in generation.contexts:
            yield Phase(name="decode", tokens=tokens), batch_size


# As many as onnxruntime-genai's engine takes together where sequences share one block of cache
# (src/engine/scheduler.cpp at 00e588f5): it answers all of them before it takes the next.
ENGINE_SEQUENCES = 4


def _usual_seconds(requests: Requests) -> Decimal:
    """How long all runs of requests usually take; longer where few come a second."""
    shares = len({*requests.load_percents} - {100})
    bounds = sum(BOUNDS_LONG[purpose] * count for purpose, count in _USUAL_RUNS.items())
    return (bounds + BOUNDS_LONG["share"] * shares) * Decimal(requests.first_token_ms) / 1000


def requests_load(requests: Requests) -> Load:
    """The scenario of a decoder behind an engine; what is bounded is its first token."""
    return Load(
        scenario="server",
        server_latency_ms=Decimal(requests.first_token_ms),
        latency_percentile=Decimal(requests.percentile) / 100,
    )


# What a trial's JSON says, in this order, of which its identity is a digest.
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
# Named here once a field is added: left out of the identity where it says what was always so.
_ADDED: Mapping[str, object] = {
    "load": None,
    "vcpus": None,
    "quantization": None,
    "graph_optimization": "all",
    "spinning": True,
    "denormals_as_zero": False,
    "input_copy": "included",
    "cuda_graph": False,
    "device": 0,
    "device_memory_limit_bytes": None,
    "other_runtime": False,
    "stored_weights": False,
    "phase": None,
    "requests": None,
}
# Settings that trials once varied; a stored trial with another value is still told apart.
_FORMER = ("graph_optimization", "spinning", "denormals_as_zero", "input_copy")
FormerValue = bool | Annotated[str, Field(pattern=r"^[a-z]{1,20}$")]
Count = Annotated[int, Field(ge=1, lt=2**53)]
Number = Annotated[int, Field(ge=0, lt=2**63)]


class SessionSettings(BaseModel):
    """How ONNX Runtime is set up, see ``specs.study.Cuda``; 0 threads: all cores.

    ``tf32`` lets CUDA round the factors of fp32 products. ``cuda_graph``, ``device`` and
    ``device_memory_limit_bytes`` are of the CUDA provider.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    threads: Number = 0
    tf32: bool = False
    cuda_graph: bool = False
    device: Number = 0
    device_memory_limit_bytes: Count | None = None


# A trial's JSON has them beside its own fields; of TF32 its precision tells.
_OF_SESSION = tuple(name for name in SessionSettings.model_fields if name != "tf32")


class Trial(BaseModel):
    """One model, mode, provider and batch size, and everything else that defines the work.

    ``graph_sha256`` is of the ONNX file, ``spec_sha256`` of what the model's spec says about the
    work (``plan.digests.work_sha256``), ``runtime`` the package and version that executes it,
    ``producer`` the version of epochcost (its gradients are part of the work). ``load`` is what
    LoadGen is asked for, None for full batches one after the other; ``batch_size`` is then the most
    that one run of the model takes. ``vcpus`` is how many CPUs the worker is pinned to, None for
    all. ``quantization`` is of int8, None as the graph suggests. ``other_runtime``: the study asked
    for a runtime that is not the installed one. ``stored_weights``: parameters are constants of the
    graph, as a server has them; training feeds them, and so did inference before. ``phase`` is a
    decoder's, of ``batch_size`` sequences; ``requests`` come to one behind an engine, which is then
    the ``runtime``. As JSON it is flat: the settings of the ``session`` stand beside the rest, and
    so do those in which a trial of an earlier version differs from all that are measured now.
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
    load: Load | None = None
    vcpus: Count | None = None
    quantization: Quantization | None = None
    other_runtime: bool = False
    stored_weights: bool = False
    phase: Phase | None = None
    requests: Requests | None = None
    former: tuple[tuple[str, FormerValue], ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _with_session(cls, said: Any) -> Any:
        if not isinstance(said, Mapping) or isinstance(said.get("session"), SessionSettings):
            return said
        if "session" in said or "former" in said:
            raise ValueError("should have the session's settings beside the rest, not in a table")
        session = {name: said[name] for name in _OF_SESSION if name in said}
        own = {name: said[name] for name in said if name not in (*session, *_FORMER)}
        values = [(name, said.get(name, _ADDED[name])) for name in _FORMER]
        former = tuple((name, value) for name, value in values if value != _ADDED[name])
        session["tf32"] = said.get("precision") == "tf32"
        return {**own, "session": session, "former": former}

    @model_serializer(mode="wrap")
    def _flat(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        said: dict[str, Any] = handler(self)
        flat = {**said, **said["session"], **dict(self.former)}
        return {name: flat[name] for name in (*_ALWAYS, *_ADDED) if name in flat}

    @property
    def scenario(self) -> Scenario:
        """How inference is loaded; training knows full batches only."""
        return "batch" if self.load is None else self.load.scenario

    @property
    def expected_seconds(self) -> Decimal:
        """About how long the timing takes: the budget, or that of requests."""
        if self.requests is not None:
            return max(self.budget_seconds, _usual_seconds(self.requests))
        return self.budget_seconds

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits: the same for the same work on any machine, on any day."""
        said = self.model_dump(mode="json")
        usual = {name for name, default in _ADDED.items() if said.get(name) == default}
        counted = {name: value for name, value in said.items() if name not in usual}
        text = json.dumps(counted, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def variant(self) -> str:
        """What sets the trial apart from the plain one of its work, in words; empty for that one.

        The installed runtime is plain whatever its version: a newer one replaces it.
        """
        session = self.session
        said = {
            self.precision: self.precision != "fp32",
            f"{self.quantization} quantisation": self.quantization is not None,
            f"{self.vcpus} vCPU": self.vcpus is not None,
            **{f"{name} {value}".replace("_", " "): True for name, value in self.former},
            "CUDA graph": session.cuda_graph,
            f"GPU {session.device}": session.device != 0,
            "memory limit": session.device_memory_limit_bytes is not None,
            self.runtime.replace("==", " "): self.other_runtime,
        }
        return ", ".join(words for words, holds in said.items() if holds)

    @property
    def decodes(self) -> bool:
        """Whether it is of a language model by the token."""
        return self.phase is not None or self.requests is not None

    @property
    def title(self) -> str:
        """What a progress display calls the trial."""
        done: str = self.mode if self.load is None else self.load.scenario
        done = done if self.phase is None else self.phase.title
        plain_title = f"{self.model} {done} {self.provider} batch {self.batch_size}"
        return f"{plain_title}, {self.variant}" if self.variant else plain_title
