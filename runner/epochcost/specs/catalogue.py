"""The kinds of spec, the catalogue of all specs by kind and id, and rules for current prices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from epochcost.errors import InputError
from epochcost.specs.api import ApiPrice, ApiTable
from epochcost.specs.base import NamedSpec, SpecT
from epochcost.specs.decoder import Decoder
from epochcost.specs.hardware import Device, Hardware
from epochcost.specs.model import Model
from epochcost.specs.price import PLAN_KINDS, Price
from epochcost.specs.published import ObservationTable, Published
from epochcost.specs.reference_data import Dataset, Grid, ReplayedJob
from epochcost.specs.study import Study
from epochcost.specs.target import Target
from epochcost.specs.wording import describe, suggest_or_list
from epochcost.statistics import group_by

KINDS: Mapping[str, type[NamedSpec]] = {
    "hardware": Hardware,
    "prices": Price,
    "grids": Grid,
    "datasets": Dataset,
    "models": Model,
    "studies": Study,
    "targets": Target,
    "published": Published,
    "devices": Device,
    "observations": ObservationTable,
    "replays": ReplayedJob,
    "apis": ApiPrice,
    "api-tables": ApiTable,
}
# The singular of each kind, for messages and names of schemas.
SINGULAR: Mapping[str, str] = {
    kind: "study" if kind == "studies" else kind.removesuffix("s") for kind in KINDS
}
# Kinds that older versions had; their folders are ignored.
FORMER = ("currencies",)
# Keys that older versions had, each with its kind and its tables; they are ignored.
FORMER_KEYS = (
    ("published", "claims", "formula"),
    ("published", "timings", "claims", "formula"),
    ("datasets", "data", "files", "unpacked_bytes"),
    ("datasets", "data", "package"),
)


def remove_former_keys(kind: str, table: Mapping[str, Any]) -> None:
    """Remove the keys of older versions from the table of a spec of ``kind``."""
    for former_kind, *path in FORMER_KEYS:
        if former_kind == kind:
            _remove_key_at(table, path)


def _remove_key_at(value: Any, key_path: Sequence[str]) -> None:
    if isinstance(value, list):
        for item in value:
            _remove_key_at(item, key_path)
    elif isinstance(value, dict) and len(key_path) > 1:
        _remove_key_at(value.get(key_path[0]), key_path[1:])
    elif isinstance(value, dict):
        value.pop(key_path[0], None)


def misplaced_kind(folder: str, table: Mapping[str, Any]) -> str | None:
    """The kind of a spec in the wrong ``folder``, by its keys; None if it may be in the folder."""
    keys = table.keys()
    if keys <= KINDS[folder].model_fields.keys():
        return None
    for kind, spec in KINDS.items():
        fields = spec.model_fields
        if {key for key, value in fields.items() if value.is_required()} <= keys <= fields.keys():
            return kind
    return None


@dataclass(frozen=True)
class Catalogue:
    """Specs by kind and id; every id that a spec refers to is in this catalogue.

    ``apis`` includes the rows of ``api_tables``. ``files`` maps ``kind/id`` to the TOML file of the
    spec. Methods with the parameter ``identifier`` raise InputError for an unknown id.
    """

    root: Path
    hardware: Mapping[str, Hardware]
    prices: Mapping[str, Price]
    models: Mapping[str, Model]
    studies: Mapping[str, Study]
    published: Mapping[str, Published]
    datasets: Mapping[str, Dataset] = field(default_factory=dict)
    grids: Mapping[str, Grid] = field(default_factory=dict)
    devices: Mapping[str, Device] = field(default_factory=dict)
    observations: Mapping[str, ObservationTable] = field(default_factory=dict)
    replays: Mapping[str, ReplayedJob] = field(default_factory=dict)
    apis: Mapping[str, ApiPrice] = field(default_factory=dict)
    api_tables: Mapping[str, ApiTable] = field(default_factory=dict)
    targets: Mapping[str, Target] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)

    @property
    def models_folder(self) -> Path:
        """The folder of the models' ONNX files."""
        return self.root / "models"

    def tables_of(self, kind: Literal["examples", "tokens"]) -> tuple[ObservationTable, ...]:
        """The tables of measured speeds in examples per second, or in tokens per second."""
        return tuple(table for table in self.observations.values() if table.kind == kind)

    def table_path(self, table: ObservationTable, name: str) -> Path:
        """The CSV file ``name`` of a table of measured speeds, in the folder of its spec."""
        return self.files[f"observations/{table.id}"].parent / name

    def table_contents(self, table: ObservationTable) -> Mapping[str, bytes]:
        """The contents of the CSV files that a table of measured speeds names, by file name."""
        names = (table.table, table.profiles, table.decoders, table.machines)
        return {name: self.table_path(table, name).read_bytes() for name in names if name}

    def graph_path(self, model: Model) -> Path:
        """The ONNX file of a model; raises InputError if the model has no graph."""
        if model.graph is None:
            raise InputError(f"{model.id}: expected a model with a graph, got one without")
        return self.models_folder / model.graph

    def prices_of(self, hardware: str) -> tuple[Price, ...]:
        """The prices of a machine under all its plans, oldest first."""
        plans = (price for price in self.prices.values() if price.hardware == hardware)
        return tuple(sorted(plans, key=lambda price: (price.as_of, price.id)))

    def machine(self, identifier: str) -> Hardware:
        """The machine with the id ``identifier``."""
        return _named("hardware", self.hardware, identifier)

    def price(self, identifier: str) -> Price:
        """The price with the id ``identifier``."""
        return _named("price", self.prices, identifier)

    def model(self, identifier: str) -> Model:
        """The model with the id ``identifier``."""
        return _named("model", self.models, identifier)

    def decoder(self, identifier: str) -> Decoder:
        """The decoder of a model; also raises InputError if the model has no decoder."""
        decoder = self.model(identifier).decoder
        if decoder is None:
            decoders = [model.id for model in self.models.values() if model.decoder]
            such = f"such as {', '.join(decoders[:3])}" if decoders else "but there is none"
            raise InputError(
                f"--model {identifier}: expected a model that generates tokens, {such}; for other "
                f"models, use `epochcost cheapest --model {identifier}`"
            )
        return decoder

    def study(self, identifier: str) -> Study:
        """The study with the id ``identifier``."""
        return _named("study", self.studies, identifier)

    def target(self, identifier: str) -> Target:
        """The target of `epochcost launch` with the id ``identifier``."""
        return _named("target", self.targets, identifier)

    def dataset(self, identifier: str) -> Dataset:
        """The data set with the id ``identifier``."""
        return _named("data set", self.datasets, identifier)

    def api_table(self, identifier: str) -> ApiTable:
        """The table of API prices with the id ``identifier``."""
        return _named("table of API prices", self.api_tables, identifier)

    def grid(self, identifier: str) -> Grid:
        """The electricity grid with the id ``identifier``."""
        return _named("grid", self.grids, identifier)


def _named(kind: str, specs: Mapping[str, SpecT], identifier: str) -> SpecT:
    spec = specs.get(identifier)
    if spec is None:
        choices = suggest_or_list(identifier, specs) or f"; this project's specs have no {kind}"
        raise InputError(f"unknown {kind} {describe(identifier)}{choices}")
    return spec


def current_prices(prices: Iterable[Price]) -> tuple[Price, ...]:
    """The prices that no newer price of the same plan supersedes.

    If a plan has a price without ``doubt``, its doubted prices are left out and supersede no price.
    """
    every = tuple(prices)
    sound = {_plan(price) for price in every if not price.doubt}
    candidates = tuple(price for price in every if not price.doubt or _plan(price) not in sound)
    by_plan = group_by(candidates, _plan)
    return tuple(
        price
        for price in candidates
        if not any(supersedes(newer, price) for newer in by_plan[_plan(price)])
    )


def with_distinct_names(machines: Mapping[str, Hardware]) -> Mapping[str, Hardware]:
    """Add the id to each name that several machines share: readers know machines by their names."""
    counts = Counter(machine.name for machine in machines.values())
    return {
        identifier: machine
        if counts[machine.name] == 1
        else machine.model_copy(update={"name": f"{machine.name} ({identifier})"})
        for identifier, machine in machines.items()
    }


def usual_price(catalogue: Catalogue, hardware: str) -> Price | None:
    """The current on-demand price of ``hardware``, or else the price of owning the machine.

    An implausible or ended price is used only if there is no other. None without a price.
    """
    order = list(PLAN_KINDS)
    current = current_prices(catalogue.prices_of(hardware))
    usual = [price for price in current if price.kind.usual]
    return min(usual, key=lambda price: (bool(price.flaw), order.index(price.plan)), default=None)


def _plan(price: Price) -> tuple[str, ...]:
    return price.hardware, price.provider, price.plan, price.currency


def supersedes(newer: Price, older: Price) -> bool:
    """Whether ``newer`` replaces ``older``, because it has the same plan and a later date.

    Machine, provider, plan, currency, months and, if both state one, product name must be equal. If
    ``older`` states a region, ``newer`` must have the same region; otherwise it may have any.
    """
    return (
        _plan(newer) == _plan(older)
        and newer.as_of > older.as_of
        and older.region in {None, newer.region}
        and (older.sku == newer.sku or None in {older.sku, newer.sku})
        and older.months == newer.months
    )
