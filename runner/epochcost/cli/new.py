"""`epochcost new`: a valid spec from flags, from answers, or from the machine or graph at hand."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcost.cli import new_model
from epochcost.cli.completion import ids
from epochcost.cli.questions import answered, asked, pairs, typed

if TYPE_CHECKING:
    from epochcost.results.records import Environment, Gpu

app = typer.Typer(
    no_args_is_help=True, help="Write a new spec: what is not given is asked at a terminal."
)
_GIB = 2**30
_OWNED = ("purchase", "years", "utilisation", "power_watts", "electricity_per_kwh")

Id = Annotated[str | None, typer.Option("--id", help="The id, which names the file.")]
Name = Annotated[str | None, typer.Option(help="What people call it.")]
Source = Annotated[str | None, typer.Option(help="Where the figures were read.")]


@app.callback()
def _new() -> None:
    """Write a new spec: what is not given is asked at a terminal."""


@app.command()
def hardware(
    detect: Annotated[
        bool, typer.Option("--detect", help="Fill in the machine at hand, as it is found.")
    ] = False,
    identifier: Id = None,
    name: Name = None,
    provider: Annotated[str | None, typer.Option(help="Who rents it out.")] = None,
    vcpus: Annotated[str | None, typer.Option(metavar="NUMBER", help="Logical CPUs.")] = None,
    memory_gib: Annotated[str | None, typer.Option(metavar="NUMBER", help="In GiB.")] = None,
    cpu: Annotated[str | None, typer.Option(help="Make of the CPU.")] = None,
    cores: Annotated[str | None, typer.Option(metavar="NUMBER", help="Physical cores.")] = None,
    gpu: Annotated[str | None, typer.Option(help="Make and form of its GPUs.")] = None,
    gpus: Annotated[int, typer.Option(min=1, help="How many of them it has.")] = 1,
    source: Source = None,
) -> None:
    """Declare a machine in specs/hardware/."""
    found = _detected() if detect else {}
    given = {
        "id": identifier,
        "name": name,
        "provider": provider,
        "vcpus": vcpus,
        "memory_gib": memory_gib,
        "cpu": cpu,
        "cores": cores,
        "source": source,
    }
    texts = {key: str(value) for key, value in found.items() if key in given}
    values = answered("hardware", {key: text or texts.get(key) for key, text in given.items()})
    if gpu is not None:
        values["accelerators"] = [{"name": gpu, "count": gpus}]
    _write("hardware", {**values, "accelerators": values.get("accelerators") or found.get("gpus")})


@app.command()
def price(
    hardware: Annotated[
        str | None, typer.Option(help="The machine, by its id.", autocompletion=ids("hardware"))
    ] = None,
    amount: Annotated[str | None, typer.Option(metavar="NUMBER", help="For an hour.")] = None,
    plan: Annotated[str, typer.Option(help="on-demand, spot, managed, marketplace, owned.")] = (
        "on-demand"
    ),
    provider: Annotated[
        str | None, typer.Option(help="Who asks it.  [default: the machine's]")
    ] = None,
    sku: Annotated[str | None, typer.Option(help="The provider's name for what is sold.")] = None,
    region: Annotated[str | None, typer.Option(help="The provider's region.")] = None,
    currency: Annotated[str, typer.Option(help="A code of ISO 4217.")] = "USD",
    billing: Annotated[str, typer.Option(help="The name of a rule of billing.")] = "per-second",
    as_of: Annotated[str | None, typer.Option(metavar="DATE", help="[default: today]")] = None,
    source: Source = None,
    identifier: Id = None,
    owned: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=NUMBER", help=f"Of an owned machine: {', '.join(_OWNED)}."),
    ] = None,
) -> None:
    """Declare a price of a machine in specs/prices/, of one plan and one day."""
    machine = hardware or asked("hardware", "The machine that it buys, by its id in hardware/.")
    day = as_of or asked(
        "as_of",
        "The day on which the source states it.",
        dt.datetime.now(dt.UTC).date().isoformat(),
    )
    given = {
        "id": identifier or f"{machine}-{plan}-{day[:7]}",
        "hardware": machine,
        "plan": plan,
        "provider": provider or _provider_of(machine),
        "sku": sku,
        "region": region,
        "amount": amount,
        "currency": currency,
        "billing": billing,
        "source": source,
        "as_of": day,
    }
    if plan == "owned":
        values = answered("prices", {**given, "billing": "prorated"})
        values["owned"] = _owned_values(owned or [])
    else:
        given["amount"] = amount or asked("amount", "What an hour of use costs.")
        values = answered("prices", given)
    _write("prices", values)


@app.command()
def study(
    model: Annotated[
        list[str] | None,
        typer.Option(help="A model, by its id; repeat.", autocompletion=ids("models")),
    ] = None,
    hardware: Annotated[
        list[str] | None,
        typer.Option(help="A machine, by its id; repeat.", autocompletion=ids("hardware")),
    ] = None,
    identifier: Id = None,
    name: Name = None,
    rounds: Annotated[int, typer.Option(min=1, help="How often a run comes back.")] = 3,
) -> None:
    """Declare a study in specs/studies/: which models are measured where."""
    models = model or asked("model", "The models, by their ids, with spaces between.").split()
    values = answered("studies", {"id": identifier, "name": name})
    _write(
        "studies",
        {**values, "models": models, "hardware": hardware or ["local"], "rounds": rounds},
    )


app.command("model")(new_model.model)


def _write(kind: str, values: dict[str, Any]) -> None:
    from epochcost.specs.layout import new_spec

    path = new_spec(Path.cwd(), kind, values)
    typer.echo(f"{path.relative_to(Path.cwd())} is new: review it, then run epochcost check")


def _provider_of(machine: str) -> str | None:
    """Who rents the machine out, where it is declared."""
    from epochcost.specs.loader import load_catalogue

    return load_catalogue(Path.cwd()).machine(machine).provider


def _owned_values(options: list[str]) -> dict[str, Any]:
    from epochcost.specs.schema import schema_of

    given = pairs("--owned", options, "years=4")
    keys = schema_of("prices")["properties"]["owned"]["properties"]
    texts = {key: given.pop(key, None) for key in _OWNED} | given
    return {
        key: typed(text or asked(key, keys[key]["description"]), keys.get(key, {}))
        for key, text in texts.items()
    }


def _detected() -> dict[str, Any]:
    """What the machine at hand tells of itself, by the keys of a spec."""
    from epochcost.measure.environment import detect

    found = detect()
    rented = found.instance
    name = rented.type if rented else (found.cpu or "unnamed machine")
    values = {
        "id": rented.type.lower() if rented else "this-machine",
        "name": name,
        "provider": rented.provider if rented else "own",
        "vcpus": found.logical_cpus,
        "memory_gib": _gib(found.memory_bytes),
        "cpu": found.cpu,
        "cores": found.physical_cores,
        "source": f"read on the machine on {dt.datetime.now(dt.UTC).date().isoformat()}",
        "gpus": _gpus(found),
    }
    return {key: value for key, value in values.items() if value}


def _gib(size_bytes: int | None) -> Decimal | None:
    return None if size_bytes is None else round(Decimal(size_bytes) / _GIB, 1)


def _gpus(found: Environment) -> list[dict[str, Any]]:
    """A table for each kind of GPU, in the order in which they are found."""
    kinds: dict[str, list[Gpu]] = {}
    for gpu in found.gpus:
        kinds.setdefault(gpu.name or "unnamed GPU", []).append(gpu)
    return [_accelerator(name, gpus) for name, gpus in kinds.items()]


def _accelerator(name: str, gpus: list[Gpu]) -> dict[str, Any]:
    limit = gpus[0].power_limit_watts
    values = {
        "name": name,
        "count": len(gpus),
        "compute_capability": gpus[0].compute_capability,
        "memory_gib": _gib(gpus[0].memory_bytes),
        "power_watts": None if limit is None else Decimal(str(limit)),
    }
    return {key: value for key, value in values.items() if value is not None}
