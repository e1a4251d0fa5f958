"""What `epochcost quote` shows beside one run's bill: a project, energy, another currency."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

import typer

from epochcost.cli.bundled import results_to_read
from epochcost.cli.terminal import RESULTS, ids
from epochcost.cost import Quote, Usage
from epochcost.cost.currency import Conversion, conversion
from epochcost.cost.energy import (
    DeclaredPower,
    EnergyReading,
    EnergyUse,
    UnknownEnergy,
    declared_power_of,
    energy_use,
    metered_energy,
)
from epochcost.cost.money import exact_arithmetic
from epochcost.cost.project import PROJECTS, Project, ProjectQuote
from epochcost.errors import InputError, UsageError
from epochcost.results.records import Result
from epochcost.results.store import load_all
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.price import Price
from epochcost.units import (
    count_words,
    money,
    parse_decimal,
    parse_share,
    plain,
    seconds,
    today,
)


@dataclass(frozen=True, slots=True)
class ProjectOptions:
    """The options of a project as they were typed; None: not given."""

    project: Annotated[str | None, typer.Option(help="A known project: ai21.")] = None
    configurations: Annotated[
        int | None, typer.Option(help="Configurations that a project tries.")
    ] = None
    repeats: Annotated[int | None, typer.Option(help="Runs of each configuration.")] = None
    machines: Annotated[
        int | None, typer.Option(help="Runs of a project at once, each on --count machines.")
    ] = None
    failed_share: Annotated[
        str | None, typer.Option(help="Share of all started runs that fail: 10%.")
    ] = None

    @property
    def wanted(self) -> bool:
        """Whether any was given."""
        return self != ProjectOptions()

    def chosen(self) -> Project:
        """The project; raises InputError on impossible numbers, UsageError on a known one's."""
        share = parse_share(self.failed_share or "0", "failed-share")
        if self.project is None:
            numbers = self.configurations, self.repeats, self.machines
            configurations, repeats, at_once = (1 if n is None else n for n in numbers)
            return Project(configurations, repeats, at_once, share)
        if self.configurations is not None or self.repeats is not None:
            raise UsageError("quote: --project has its own --configurations and --repeats")
        if self.project not in PROJECTS:
            raise InputError(
                f"project: expected one of {', '.join(PROJECTS)}, got {self.project!r:.40}"
            )
        known, at_once = PROJECTS[self.project], 1 if self.machines is None else self.machines
        return Project(known.configurations, known.repeats, at_once, share)


@dataclass(frozen=True, slots=True)
class EnergyOptions:
    """The options of energy as they were typed; None: not given."""

    grid: Annotated[
        str | None,
        typer.Option(help="Id of a grid: show energy and CO2 too.", autocompletion=ids("grids")),
    ] = None
    watts: Annotated[
        str | None, typer.Option(help="Power of one machine.  [default: as its spec says]")
    ] = None
    load: Annotated[str | None, typer.Option(help="Share of that power drawn.")] = None
    power_of: Annotated[
        str | None,
        typer.Option(
            help="Id of a model: the power metered with it on that machine.",
            autocompletion=ids("models"),
        ),
    ] = None
    pue: Annotated[str | None, typer.Option(help="The building's power over the machine's.")] = None

    def __post_init__(self) -> None:
        given = self.watts, self.load, self.pue, self.power_of
        if self.grid is None and any(option is not None for option in given):
            raise UsageError("quote: --watts, --load, --pue and --power-of demand --grid")
        if self.power_of is not None and (self.watts, self.load) != (None, None):
            raise UsageError("quote: --power-of is measured; it demands no --watts and no --load")

    def energy(
        self, price: Price | None, usage: Usage, failures: Decimal, catalogue: Catalogue
    ) -> EnergyUse | UnknownEnergy:
        """The energy of all runs, failed ones too; UnknownEnergy where nobody says a power.

        ``failures`` are those expected for each run that counts.
        """
        assert self.grid is not None, "asked for energy"
        grid, pue = catalogue.grid(self.grid), _decimal(self.pue, "PUE")
        with exact_arithmetic():
            machine_seconds = usage.duration_seconds * usage.machines * (1 + failures)
        if self.power_of is None:
            power: EnergyReading | DeclaredPower | UnknownEnergy = self._declared(
                price, usage, catalogue
            )
        else:
            power = _metered(self.power_of, price, machine_seconds, catalogue)
        if isinstance(power, UnknownEnergy):
            return power
        if pue is None and price is not None and price.owned is not None:
            pue = price.owned.pue
        return energy_use(power, machine_seconds, grid, pue)

    def _declared(
        self, price: Price | None, usage: Usage, catalogue: Catalogue
    ) -> DeclaredPower | UnknownEnergy:
        load = parse_share(self.load or "1", "load")
        if self.watts is not None:
            return DeclaredPower(parse_decimal(self.watts, "watts"), load)
        if price is None:
            raise UsageError("quote: --grid with --rate demands --watts: a rate has no machine")
        hardware, vcpus = catalogue.machine(price.hardware), usage.vcpus or os.cpu_count()
        return declared_power_of(price, hardware, vcpus, load)


def _metered(
    model: str, price: Price | None, machine_seconds: Decimal, catalogue: Catalogue
) -> EnergyReading | UnknownEnergy:
    """At the mean power of the model's last plain result on the machine, of those with a meter."""
    if price is None:
        raise UsageError("quote: --power-of demands --price: a rate has no machine")
    name = catalogue.model(model).id
    found = [
        result
        for result in load_all(results_to_read(RESULTS)).results
        if (result.trial.model, result.hardware, result.trial.variant) == (name, price.hardware, "")
        and _was_metered(result)
    ]
    if not found:
        return UnknownEnergy(f"no meter was read in a result of {name} on {price.hardware}")
    last = max(found, key=lambda result: result.measurement.started_at)
    return metered_energy(last.measurement.energy, machine_seconds)


def _was_metered(result: Result) -> bool:
    energy = result.measurement.energy
    return energy is not None and energy.watts is not None


def find_conversion(quote: Quote, currency: str, catalogue: Catalogue, day: dt.date) -> Conversion:
    """The rate from the quote's currency; raises InputError where there is none by that day."""
    return conversion(quote.currency, currency, catalogue.currencies.values(), day)


def project_as_json(found: ProjectQuote) -> dict[str, Any]:
    """The project's numbers and times."""
    project = found.project
    return {
        "configurations": project.configurations,
        "repeats": project.repeats,
        "runs": project.runs,
        "failed_share": project.failed_share,
        "failed_runs_expected": project.failures,
        "at_once": project.at_once,
        "in_sequence_seconds": found.in_sequence_seconds,
        "at_once_seconds": found.at_once_seconds,
    }


def project_words(found: ProjectQuote) -> Iterator[str]:
    """What the project is, and its time both ways."""
    project = found.project
    failed = f", {plain(project.failed_share)} of all that are started fail"
    yield (
        f"Project: {count_words(project.configurations, 'configuration')} of "
        f"{count_words(project.repeats, 'run')} each{failed if project.failures else ''}; "
        "every run is started and billed by itself."
    )
    yield f"One after the other: {seconds(float(found.in_sequence_seconds))}."
    if project.at_once > 1:
        time = seconds(float(found.at_once_seconds))
        yield f"{project.at_once:,} runs at once: {time}, for the same money."


def energy_as_json(energy: EnergyUse | UnknownEnergy) -> dict[str, Any]:
    """The figures with all that they rest on, or why there are none."""
    if isinstance(energy, UnknownEnergy):
        return {"unknown": energy.reason}
    grid = energy.grid
    return {
        "measured": isinstance(energy.power, EnergyReading),
        "source": energy.power.words,
        "machines_kwh": energy.machines_kwh,
        "pue": energy.pue,
        "pue_source": energy.pue_source,
        "building_kwh": energy.building_kwh,
        "grid": grid.id,
        "grid_year": grid.year,
        "grid_source": grid.source,
        "kg_co2e_per_kwh": grid.kg_co2e_per_kwh,
        "kg_co2e": energy.kg_co2e,
        "lb_co2e": energy.pounds_co2e,
    }


def energy_words(energy: EnergyUse | UnknownEnergy) -> Iterator[str]:
    """The energy and the emissions, each with its source."""
    if isinstance(energy, UnknownEnergy):
        yield f"Energy: not known. {energy.reason}; say it with --watts."
        return
    grid, kwh = energy.grid, energy.building_kwh
    yield "Not part of the bill:"
    yield (
        f"Energy: {_figure(kwh)} kWh, {energy.power.words}; "
        f"PUE {plain(energy.pue)} ({energy.pue_source})."
    )
    yield (
        f"Emissions: {_figure(energy.kg_co2e)} kg ({_figure(energy.pounds_co2e)} lb) of CO2e, "
        f"at {_figure(grid.kg_co2e_per_kwh)} kg per kWh: {grid.name}, {grid.year}; {grid.source}."
    )


def converted_as_json(quote: Quote, found: Conversion) -> dict[str, Any]:
    """The total in the other currency, and by which rate."""
    return {
        "total": found.amount(quote.total),
        "currency": found.quote,
        "rate": found.rate and found.rate.id,
        "rate_as_of": found.rate and found.rate.as_of,
        "inverse": found.inverse,
    }


def converted_words(quote: Quote, found: Conversion) -> str:
    """The total in the other currency, and by which rate."""
    return f"In {found.quote}: {money(found.amount(quote.total), found.quote)}, by {found.words}."


def parse_day(text: str | None) -> dt.date:
    """A day of the calendar, today where none is given; raises InputError on anything else."""
    if text is None:
        return today()
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise InputError(f"day: expected a date such as 2026-06-01, got {text!r:.40}") from None


def _decimal(text: str | None, name: str) -> Decimal | None:
    return None if text is None else parse_decimal(text, name)


def _figure(value: Decimal) -> str:
    return f"{float(value):,.3g}" if value < 1000 else f"{value:,.0f}"
