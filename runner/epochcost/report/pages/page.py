"""What a page is before it is rendered, and the report that pages are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from epochcost.report.charts.figure import Figure
from epochcost.report.estimates import EstimatedRow, estimated
from epochcost.report.figures.parts import Colours, machine_colours
from epochcost.report.inputs import Inputs
from epochcost.report.observations import (
    Observation,
    observe,
    observe_variants,
    subjects,
)
from epochcost.report.rows import Row, join
from epochcost.report.serving import ServingRow, serving_rows
from epochcost.report.subjects import Subject
from epochcost.specs.catalogue import Catalogue


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

    @property
    def catalogue(self) -> Catalogue:
        """The specs."""
        return self.inputs.catalogue

    @cached_property
    def observations(self) -> tuple[Observation, ...]:
        """Every timed workload."""
        return observe(self.inputs)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Every priced row."""
        return join(self.inputs)

    @cached_property
    def variants(self) -> tuple[Observation, ...]:
        """Every measured trial that is not the plain one of its work."""
        return observe_variants(self.inputs)

    @cached_property
    def serving(self) -> tuple[ServingRow, ...]:
        """Every scenario of LoadGen, priced."""
        return serving_rows(self.inputs)

    @cached_property
    def subjects(self) -> tuple[Subject, ...]:
        """Every workload: models first."""
        return subjects(self.catalogue, self.observations)

    @cached_property
    def colours(self) -> Colours:
        """The colour number of each machine."""
        return machine_colours(self.catalogue.hardware.values(), self.observations)

    @cached_property
    def estimated(self) -> Mapping[str, tuple[EstimatedRow, ...]]:
        """What nobody timed and is priced from its operations, by id of the model."""
        return estimated(self.inputs, self.rows)

    def rows_of(self, subject: Subject) -> tuple[Row, ...]:
        """The rows of one workload, cheapest first."""
        return tuple(row for row in self.rows if row.observed.subject.id == subject.id)


def subject_uri(subject: Subject) -> str:
    """The page of a workload; those known from tables only stand apart, so that ids never meet."""
    folder = "models" if subject.is_model else "models/published"
    return f"{folder}/{subject.id}.md"


def machine_uri(hardware: str) -> str:
    """The page of a kind of machine."""
    return f"machines/{hardware}.md"
