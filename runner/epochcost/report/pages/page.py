"""Define `Page`, a page before rendering, and `Report`, from which all pages are computed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal

from epochcost.analysis.difference.changes import Difference, Publication
from epochcost.analysis.difference.revision import Revision
from epochcost.analysis.finetune import FinetuneAnswer, TrainingDemand, TuningMarket
from epochcost.analysis.observations import Workload, workloads
from epochcost.analysis.phases import TimedDecoder, timed_decoders
from epochcost.analysis.prediction_trust import Trust, read_trust
from epochcost.analysis.rows import Row, usual_currency
from epochcost.analysis.token_answers import TokenAnswer, TokenMarket, usual_answers
from epochcost.errors import InputError, ResultError
from epochcost.predict.decoders.training_rows import Method
from epochcost.report import ranking
from epochcost.report.charts.figure import Figure
from epochcost.statistics import group_by

Job = Literal["train", "serve", "tokens", "lora"]
# Each precedes the name of a model.
JOB_NAMES: Mapping[Job, str] = {
    "train": "train",
    "serve": "answer a million requests of",
    "tokens": "serve, at full load, a million tokens of",
    "lora": "fine-tune by LoRA",
}
# The methods of fine-tuning, in the order of pages.
METHOD_NAMES: Mapping[Method, str] = {"lora": "LoRA", "qlora": "QLoRA", "full": "all weights"}
# A fine-tuning on a decoder's page: examples, their tokens and epochs.
TUNING = (10_000, 512, 3)


@dataclass(frozen=True)
class Page:
    """A page before it is rendered; ``figures`` are by the names that the template uses."""

    uri: str
    title: str
    template: str
    context: Mapping[str, Any]
    description: str = ""
    figures: Mapping[str, Figure | None] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """The address of the site's root relative to the page."""
        return "../" * self.uri.count("/")


@dataclass(frozen=True)
class Report(Revision):
    """The project in the working tree, and all values that the site shows."""

    publication: Publication = field(default_factory=Publication)

    @cached_property
    def currency(self) -> str | None:
        """The currency of most prices in the project; None if the project has no prices."""
        return usual_currency(price.currency for price in self.catalogue.prices.values())

    @cached_property
    def decoders(self) -> Mapping[str, tuple[TimedDecoder, ...]]:
        """Decoders whose prefill and decoding were timed on a machine, by model id."""
        return group_by(timed_decoders(self.inputs), lambda decoder: decoder.model)

    @cached_property
    def trust(self) -> Trust | None:
        """The inaccuracy of predictions; None if the file with the errors is missing or invalid."""
        with contextlib.suppress(ResultError):
            return read_trust(self.inputs.docs)
        return None

    @cached_property
    def changes(self) -> Difference | str:
        """The changes since the site was last published, or the reason why they are unknown."""
        return self.publication.changes(self)

    @cached_property
    def workloads(self) -> Mapping[Workload, tuple[Row, ...]]:
        """Every workload with its rows, cheapest first; workloads with a model spec first."""
        rows = group_by(self.rows, lambda row: row.observed.workload)
        listed = workloads(self.catalogue, self.observations)
        return {workload: rows.get(workload, ()) for workload in listed}

    @cached_property
    def market(self) -> TokenMarket:
        """All machines and APIs, from which the costs of requests to decoders are computed."""
        return TokenMarket(self.inputs)

    @cached_property
    def tokens(self) -> Mapping[str, TokenAnswer]:
        """For each decoder id, machines and APIs for requests of typical lengths, with costs.

        Entries are for decoders that something can serve, or whose speed in an engine was measured.
        """
        return usual_answers(self.market)

    @cached_property
    def tuned(self) -> Mapping[str, Mapping[Method, FinetuneAnswer]]:
        """Machines for a typical fine-tuning, with their costs, by decoder id and method."""
        market, models = self.tuning_market, self.catalogue.models.values()
        return {model.id: dict(_by_method(market, model.id)) for model in models if model.decoder}

    @cached_property
    def tuning_market(self) -> TuningMarket:
        """The machines, and a method that predicts a fine-tuning's time and cost on each."""
        return TuningMarket(self.inputs)

    @cached_property
    def contests(self) -> Mapping[Workload, Mapping[Job, ranking.Contest]]:
        """The ranked machines by workload and job; a job without a ranking has no entry.

        The job "train" is a full training, or a single epoch if the number of epochs is unknown.
        Without a time of training, the ranking is by estimated costs of a full training.
        """
        return {
            workload: {job: machines for job, machines in self._ranked(workload) if machines}
            for workload in self.workloads
        }

    def _ranked(self, workload: Workload) -> Iterator[tuple[Job, ranking.Contest | None]]:
        rows, estimated = self.workloads[workload], self.estimated.get(workload.key, ())
        full = ranking.contest(rows, "full") or ranking.contest(rows, "epoch")
        yield "train", full or ranking.estimated_contest(estimated)
        yield "serve", ranking.contest(rows, "million")
        if workload.key in self.tokens:
            yield "tokens", ranking.tokens_contest(self.tokens[workload.id])
        if "lora" in self.tuned.get(workload.key, {}):
            yield "lora", ranking.tuning_contest(self.tuned[workload.id]["lora"])

    @cached_property
    def gpu_memory(self) -> Mapping[str, str]:
        """The memory (GiB) of each machine's largest accelerator, by machine id; "" if unknown."""
        return {
            hardware.id: str(max(sizes))
            if (sizes := [chip.memory_gib for chip in hardware.accelerators if chip.memory_gib])
            else ""
            for hardware in self.catalogue.hardware.values()
        }


def _by_method(market: TuningMarket, name: str) -> Iterator[tuple[Method, FinetuneAnswer]]:
    for method in METHOD_NAMES:
        with contextlib.suppress(InputError):
            demand = TrainingDemand(name, method, Decimal(math.prod(TUNING)), TUNING[1])
            yield method, market.answer(demand)


def workload_uri(workload: Workload) -> str:
    """The address of a workload's page."""
    return f"models/{workload.key}.md"


def stem(workload: Workload) -> str:
    """The prefix of the names of all files about a workload."""
    return workload_uri(workload).removesuffix(".md").replace("/", "-")


def machine_uri(hardware: str) -> str:
    """The address of the page about a kind of machine."""
    return f"machines/{hardware}.md"


def html(uri: str) -> str:
    """The address of the HTML page that is built from a Markdown page."""
    return uri.removesuffix("md") + "html"
