"""What a page is before it is rendered, and the report that pages are made from."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from epochcost.analysis.difference.publication import Publication
from epochcost.analysis.estimates import EstimatedRow, estimated_rows
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.observations import (
    Observation,
    Workload,
    observe,
    observe_variants,
    workloads,
)
from epochcost.analysis.phases import TimedDecoder, timed_decoders
from epochcost.analysis.predicted import Predictions, predict_times
from epochcost.analysis.prediction_trust import Trust, read_trust
from epochcost.analysis.rows import Row, group_by, price_rows
from epochcost.analysis.served_tokens import ServedDecoder, served_decoders
from epochcost.analysis.serving import ServingRow, serving_rows
from epochcost.analysis.table.lines import Line, published_lines
from epochcost.errors import ResultError
from epochcost.report.charts.figure import Colours, Figure, machine_colours
from epochcost.report.list_prices import Listed, list_prices
from epochcost.report.ranking import Contest, contest, estimated_contest
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Hardware

Job = Literal["train", "serve"]


@dataclass(frozen=True)
class Page:
    """A page to be: its address (``.md``), title, template, and what the template is given.

    ``figures`` are all figures that the template may show, by the name it uses.
    """

    uri: str
    title: str
    template: str
    context: Mapping[str, Any]
    description: str = ""
    figures: Mapping[str, Figure | None] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """The relative way from the page to the site's root."""
        return "../" * self.uri.count("/")


@dataclass(frozen=True)
class Report:
    """The inputs and what follows from them, each computed once."""

    inputs: Inputs
    publication: Publication = field(default_factory=Publication)

    @property
    def catalogue(self) -> Catalogue:
        """The specs."""
        return self.inputs.catalogue

    @cached_property
    def trust(self) -> Trust | None:
        """How far predictions are off; None if nobody computed that, or nobody can read it."""
        with contextlib.suppress(ResultError):
            return read_trust(self.inputs.docs)
        return None

    @cached_property
    def observations(self) -> tuple[Observation, ...]:
        """Every timed workload, and what is predicted of machines where nobody timed it."""
        timed = observe(self.inputs)
        return (*timed, *self.predictions.beyond(timed))

    @cached_property
    def predictions(self) -> Predictions:
        """Every predicted time, and why others have none."""
        return predict_times(self.inputs, self.catalogue.models.values())

    @cached_property
    def gpus_measured(self) -> bool:
        """Whether any time on a GPU is one of ours."""
        return any(
            one.kind == "measured" and one.machine.device == "cuda" for one in self.observations
        )

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Every priced row."""
        return price_rows(self.catalogue, self.observations)

    @cached_property
    def variants(self) -> tuple[Observation, ...]:
        """Every measured trial that is not the plain one of its work."""
        return observe_variants(self.inputs)

    @cached_property
    def serving(self) -> tuple[ServingRow, ...]:
        """Every scenario of LoadGen, priced."""
        return serving_rows(self.inputs)

    @cached_property
    def decoders(self) -> tuple[TimedDecoder, ...]:
        """Every decoder whose phases were timed, by machine and precision."""
        return timed_decoders(self.inputs)

    @cached_property
    def served_decoders(self) -> tuple[ServedDecoder, ...]:
        """Every decoder that was asked behind an engine, by machine and precision."""
        return tuple(served_decoders(self.inputs))

    @cached_property
    def workloads(self) -> tuple[Workload, ...]:
        """Every workload: models first."""
        return workloads(self.catalogue, self.observations)

    @cached_property
    def colours(self) -> Colours:
        """The colour number of each machine."""
        return machine_colours(self.catalogue.hardware.values(), self.observations)

    @cached_property
    def list_prices(self) -> Mapping[str, Listed]:
        """The list price on demand of each machine, by its id."""
        return list_prices(self.catalogue)

    @cached_property
    def estimated(self) -> Mapping[str, tuple[EstimatedRow, ...]]:
        """What nobody timed and is priced from its operations, by id of the model."""
        return estimated_rows(self.inputs, self.rows)

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """Every figure, as the published table has it."""
        return published_lines(
            self.catalogue, self.rows, self.variants, self.serving, self.estimated
        )

    def rows_of(self, workload: Workload) -> tuple[Row, ...]:
        """The rows of one workload, cheapest first."""
        return self._rows_by_workload.get(workload, ())

    def observations_on(self, hardware: Hardware) -> tuple[Observation, ...]:
        """Every workload that was timed on one kind of machine."""
        return self._observations_by_hardware.get(hardware.id, ())

    def contests_of(self, workload: Workload) -> Mapping[Job, Contest]:
        """The machines that can train and that can serve a workload.

        By the full training; where no source counts its epochs, by one of them.
        """
        return self._contests.get(workload, {})

    @cached_property
    def _rows_by_workload(self) -> Mapping[Workload, tuple[Row, ...]]:
        return group_by(self.rows, lambda row: row.observed.workload)

    @cached_property
    def _observations_by_hardware(self) -> Mapping[str, tuple[Observation, ...]]:
        return group_by(self.observations, lambda one: one.machine.hardware)

    @cached_property
    def _contests(self) -> Mapping[Workload, Mapping[Job, Contest]]:
        found = {}
        for workload in self.workloads:
            rows = self.rows_of(workload)
            estimated = self.estimated.get(workload.id, ()) if workload.is_model else ()
            jobs: Mapping[Job, Contest | None] = {
                "train": contest(rows, "full")
                or contest(rows, "epoch")
                or estimated_contest(estimated),
                "serve": contest(rows, "million"),
            }
            found[workload] = {job: one for job, one in jobs.items() if one}
        return found


def workload_uri(workload: Workload) -> str:
    """The page of a workload."""
    return f"models/{workload.key}.md"


def stem(workload: Workload) -> str:
    """What names of files about a workload begin with."""
    return workload_uri(workload).removesuffix(".md").replace("/", "-")


def machine_uri(hardware: str) -> str:
    """The page of a kind of machine."""
    return f"machines/{hardware}.md"


def html(uri: str) -> str:
    """The address of the page that a source becomes."""
    return uri.removesuffix("md") + "html"
