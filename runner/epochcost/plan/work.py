"""The kinds of work in a trial: steps, a load by LoadGen, a decoder's phase, and requests.

``execute`` writes the files for the work and estimates its memory. ``measure`` measures the work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from epochcost.specs import requests as spec
from epochcost.specs.decoder import Decoder, PhaseName
from epochcost.specs.model import Inference, Model
from epochcost.specs.study import Mode, Scenario, Study
from epochcost.units import plain

LoadScenario = Literal["offline", "server"]


# Stored results are read in strict mode, which takes no text for a Decimal.
def _decimal(value: Any) -> Any:
    try:
        return Decimal(value) if isinstance(value, str) else value
    except InvalidOperation:
        raise ValueError("should be a decimal number") from None


# Budgets of 12 and 12.0 are equal and give the same id.
CanonicalDecimal = Annotated[
    Decimal,
    BeforeValidator(_decimal),
    Field(ge=0, le=1_000_000_000, max_digits=40, decimal_places=30),
    AfterValidator(lambda value: Decimal(plain(value))),
]


class _Kind(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    decodes: ClassVar[bool] = False
    usual_seconds: ClassVar[Decimal] = Decimal(0)


class Steps(_Kind):
    """Work in steps: the model runs full batches in succession, in training or in inference."""

    scenario: ClassVar[Scenario] = "batch"
    title: ClassVar[str] = ""
    stored: ClassVar[Mapping[str, BaseModel]] = MappingProxyType({})

    kind: Literal["steps"] = "steps"


# The work of every trial without a load, a phase or requests.
STEPS = Steps()


class Load(_Kind):
    """Inference under a scenario of MLPerf's LoadGen.

    ``server_latency_ms`` is the upper bound of the latency at ``latency_percentile``. A sample may
    wait ``maximum_delay_ms`` for others in its batch. ``compliant`` is False: the results are not
    official ones of MLPerf. Settings that ``scenario`` does not use are None.
    """

    kind: Literal["load"] = "load"
    scenario: LoadScenario
    # The id of every stored trial depends on this field.
    compliant: Literal[False] = False
    samples_per_query: Literal[1] = 1
    server_latency_ms: CanonicalDecimal | None = None
    latency_percentile: CanonicalDecimal | None = None
    maximum_delay_ms: CanonicalDecimal | None = None

    @property
    def title(self) -> str:
        """The name of the scenario."""
        return self.scenario

    @property
    def stored(self) -> Mapping[str, BaseModel]:
        """The keys and values that describe this work in a trial's stored JSON."""
        return {"load": self}

    @property
    def bound_seconds(self) -> float | None:
        """Latency bound in seconds; None unless declared, and in scenarios other than "server"."""
        return None if self.server_latency_ms is None else float(self.server_latency_ms) / 1e3


class Phase(_Kind):
    """A decoder's phase: read a prompt of ``tokens`` tokens, or decode one after as many tokens."""

    scenario: ClassVar[Scenario] = "batch"
    decodes: ClassVar[bool] = True

    kind: Literal["phase"] = "phase"
    name: PhaseName
    tokens: Annotated[int, Field(ge=1, lt=2**53)]

    @property
    def title(self) -> str:
        """The phase and its number of tokens, for people."""
        return f"prefill of {self.tokens}" if self.name == "prefill" else f"decode at {self.tokens}"

    @property
    def stored(self) -> Mapping[str, BaseModel]:
        """The keys and values that describe this work in a trial's stored JSON."""
        return {"phase": self}

    @property
    def new_tokens(self) -> int:
        """Tokens that a pass adds to each cached sequence: the whole prompt, or one in decoding."""
        return self.tokens if self.name == "prefill" else 1

    @property
    def length(self) -> int:
        """Number of tokens that each sequence has in the cache after the run."""
        return self.tokens if self.name == "prefill" else self.tokens + 1


# Number of sequences that onnxruntime-genai's engine decodes together if they share a block of
# cache (src/engine/scheduler.cpp at 00e588f5). It answers all of them before it accepts the next.
ENGINE_SEQUENCES = 4
# Duration of a run of requests, as a multiple of the latency bound for first tokens. At a rate that
# is a tenth too high, waiting times reach the bound after about ten times the bound. Near capacity
# they keep growing: an engine sustained 4.5 requests a second for 20 s, but only 3.9 for 100 s.
BOUNDS_LONG: Mapping[str, int] = MappingProxyType({"search": 10, "scored": 50, "share": 10})
# Usual number of runs to find and confirm a rate, from the committed results.
_USUAL_RUNS: Mapping[str, int] = MappingProxyType({"search": 6, "scored": 3})


class Requests(spec.Requests):
    """Requests to a decoder in a serving engine, as a study describes them."""

    scenario: ClassVar[Scenario] = "server"
    decodes: ClassVar[bool] = True
    title: ClassVar[str] = "server"

    kind: Literal["requests"] = "requests"

    @property
    def load(self) -> Load:
        """LoadGen's settings; their latency bound is for the first token, not further tokens."""
        return Load(
            scenario="server",
            server_latency_ms=Decimal(self.first_token_ms),
            latency_percentile=Decimal(self.percentile) / 100,
        )

    @property
    def stored(self) -> Mapping[str, BaseModel]:
        """LoadGen's settings and this object, by their keys in a trial's stored JSON."""
        return {"load": self.load, "requests": self}

    @property
    def usual_seconds(self) -> Decimal:
        """Usual duration in seconds of a whole measurement, which consists of many LoadGen runs.

        At a low request rate, it takes longer, because each run needs a minimum of requests.
        """
        shares = len({*self.load_percents} - {100})
        bounds = sum(BOUNDS_LONG[purpose] * count for purpose, count in _USUAL_RUNS.items())
        return (bounds + BOUNDS_LONG["share"] * shares) * Decimal(self.first_token_ms) / 1000


Work = Steps | Load | Phase | Requests
# Keys of a stored trial that say its kind of work; the first that is present decides.
STORED_KEYS = ("requests", "phase", "load")


def tagged(stored: Mapping[str, Any]) -> Any:
    """A stored trial's table for its work, such as ``load``, plus the table's key as ``kind``."""
    kind = next((key for key in STORED_KEYS if stored.get(key) is not None), "steps")
    value = stored.get(kind, {})
    if isinstance(value, Mapping) and "kind" in value:
        raise ValueError(f"{kind} should have no key 'kind'")
    return {**value, "kind": kind} if isinstance(value, Mapping) else value


def planned_work(study: Study, model: Model, mode: Mode) -> Iterator[tuple[Work, int]]:
    """Yield the work that a study plans for a model besides steps, each with a batch size.

    Training has no such work. The batch size is a phase's number of sequences, or the largest
    number of sequences or examples computed together for requests or a load.
    """
    if mode == "training":
        return
    if model.decoder is not None:
        yield from _decoder_work(study, model.decoder)
    elif model.inference is not None:
        yield from _loadgen_work(study, model.inference)


def _decoder_work(study: Study, decoder: Decoder) -> Iterator[tuple[Work, int]]:
    if study.requests is not None:
        yield Requests(**dict(study.requests)), ENGINE_SEQUENCES
        if study.generation is None:
            return
    generation = study.generation or decoder.generation
    for sequences in generation.batch_sizes:
        for tokens in generation.prompts:
            yield Phase(name="prefill", tokens=tokens), sequences
        for tokens in generation.contexts:
            yield Phase(name="decode", tokens=tokens), sequences


def _loadgen_work(study: Study, inference: Inference) -> Iterator[tuple[Work, int]]:
    serving, sizes = study.serving, study.inference_batch_sizes
    largest = max(inference.batch_sizes if sizes is None or sizes == "auto" else sizes)
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
