"""What LoadGen is asked for: the scenarios of MLPerf Inference, from a study's and a model's spec.

Pure. How LoadGen is driven is left to ``measure.loadgen``.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from epochcost.specs.model import Inference
from epochcost.specs.study import Study
from epochcost.units import plain

# Of every scenario in MLPerf's rules (mlcommons/inference, loadgen/mlperf.conf, revision 001712e9).
COMPLIANT_SECONDS = 600
LoadScenario = Literal["single-stream", "multi-stream", "offline", "server"]


def _decimal(value: Any) -> Any:
    """JSON has decimals as texts."""
    try:
        return Decimal(value) if isinstance(value, str) else value
    except InvalidOperation:
        raise ValueError("should be a decimal number") from None


# 12 and 12.0 are the same budget and give the same id; more digits nobody writes.
Canonical = Annotated[
    Decimal,
    BeforeValidator(_decimal),
    Field(ge=0, le=1_000_000_000, max_digits=40, decimal_places=30),
    AfterValidator(lambda value: Decimal(plain(value))),
]


class Load(BaseModel):
    """One scenario and what defines it; what a scenario does not know is None.

    ``compliant``: the durations and counts of MLPerf's rules instead of seconds.
    ``server_latency_ms`` bounds ``latency_percentile``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: LoadScenario
    compliant: bool = False
    samples_per_query: Annotated[int, Field(ge=1, lt=2**53)] = 1
    server_latency_ms: Canonical | None = None
    latency_percentile: Canonical | None = None
    maximum_delay_ms: Canonical | None = None

    @property
    def title(self) -> str:
        """The scenario, and whether it is MLPerf's whole length."""
        return f"{self.scenario} (compliant)" if self.compliant else self.scenario

    @property
    def lacks_bound(self) -> bool:
        """Whether this is a server of which nobody said how soon it must answer."""
        return self.scenario == "server" and self.server_latency_ms is None


def loads(study: Study, inference: Inference, *, compliant: bool) -> Iterator[tuple[Load, int]]:
    """The study's scenarios under LoadGen, each with the most samples of one run of the model."""
    serving, asked = study.serving, study.inference_batch_sizes
    largest = max(inference.batch_sizes if asked is None or asked == "auto" else asked)
    most = serving.maximum_batch or largest
    for scenario in study.scenarios:
        if scenario == "single-stream":
            yield Load(scenario=scenario, compliant=compliant), 1
        elif scenario == "multi-stream":
            samples = serving.samples_per_query
            load = Load(scenario=scenario, compliant=compliant, samples_per_query=samples)
            yield load, min(most, samples)
        elif scenario == "offline":
            yield Load(scenario=scenario, compliant=compliant), most
        elif scenario == "server":
            yield _server(study, inference, compliant), most


def _server(study: Study, inference: Inference, compliant: bool) -> Load:
    serving = study.serving
    return Load(
        scenario="server",
        compliant=compliant,
        server_latency_ms=serving.server_latency_ms or inference.server_latency_ms,
        latency_percentile=serving.latency_percentile,
        maximum_delay_ms=serving.maximum_delay_ms,
    )
