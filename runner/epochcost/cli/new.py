"""`epochcost new`: write a valid spec from options, from this machine or from a graph."""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from epochcost.cli.bundled import own_catalogue
from epochcost.cli.new_model import copy_to_models, load_step_graph, values_of_graph
from epochcost.cli.refusals import A_DAY
from epochcost.cli.terminal import ids, pairs
from epochcost.errors import InputError, UsageError
from epochcost.results.environment import Gpu
from epochcost.specs.catalogue import KINDS, Catalogue, current_prices
from epochcost.specs.draft import new_spec, require, spec_values, typed
from epochcost.specs.hardware import Accelerator
from epochcost.specs.loader import BUNDLED, load_catalogue
from epochcost.specs.price import Price
from epochcost.specs.prices.new_specs import dated_id
from epochcost.specs.schema import schema_of
from epochcost.specs.wording import suggest_or_list, suggestion
from epochcost.statistics import group_by
from epochcost.units import CONVERT

app = typer.Typer(no_args_is_help=True, help="Write a new spec from options, a machine or a graph.")
_GIB = 2**30
_OWNED = ("purchase", "years", "utilisation", "power_watts", "electricity_per_kwh")
_IF_ANY = ("residual", "idle_watts", "pue", "rack_per_month", "maintenance_per_year")
_NOT_COMPARED = f"costs in different currencies are not compared: {CONVERT}"


def _with_spec_options(
    spec_kind: str, *keys: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each of a spec's ``keys``, instead of ``**texts``."""
    properties = schema_of(spec_kind)["properties"]

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        *others, _ = signature.parameters.values()
        parameters = [*others, *(_option(key, properties[key]) for key in keys)]
        # typer reads the options from here.
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return command

    return decorated


def _option(key: str, described: Mapping[str, Any]) -> inspect.Parameter:
    option = typer.Option(
        f"--{key.replace('_', '-')}",
        help=described["description"],
        metavar="NUMBER" if described.get("type") in ("integer", "number") else "TEXT",
        autocompletion=ids(key) if key in KINDS else None,
    )
    kind = Annotated[str | None, option]
    return inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)


@app.command()
@_with_spec_options(
    "hardware", "id", "name", "provider", "vcpus", "memory_gib", "cpu", "cores", "source"
)
def hardware(
    *,
    detect: Annotated[
        bool, typer.Option("--detect", help="Fill in the facts of this machine.")
    ] = False,
    gpu: Annotated[str | None, typer.Option(help="A GPU's name in specs/devices/.")] = None,
    gpus: Annotated[int, typer.Option(min=1, help="Number of these GPUs.")] = 1,
    **texts: str | None,
) -> None:
    """Declare a machine in specs/hardware/.

    Example: epochcost new hardware --detect --id workstation
    """
    if gpus > 1 and gpu is None:
        raise UsageError(f"--gpus {gpus}: expected --gpu NAME with it")
    detected = _detected_hardware_values() if detect else {}
    facts = {key: str(detected[key]) for key in texts if detected.get(key) is not None}
    values = spec_values("hardware", {key: text or facts.get(key) for key, text in texts.items()})
    accelerators = detected.get("gpus") if gpu is None else [_gpu_from_catalogue(gpu, gpus)]
    _write_new_spec("hardware", {**values, "accelerators": accelerators})


@app.command()
@_with_spec_options(
    "prices", "id", "hardware", "plan", "provider", "sku", "region", "amount", "currency",
    "billing", "source", "as_of",
)  # fmt: skip
def price(
    *,
    owned: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=NUMBER",
            help=f"Value of an owned machine: {', '.join(_OWNED)}; if any, {', '.join(_IF_ANY)}.",
        ),
    ] = None,
    **texts: str | None,
) -> None:
    """Declare a machine's price on a day, in specs/prices/.

    By default, the price is dated today, in USD, from the machine's provider, on demand and billed
    by the second.

    Example: epochcost new price --hardware g6.xlarge --amount 0.8048 --region us-east-1
    --source "the provider's list"
    """
    plan = texts["plan"] or "on-demand"
    if owned and plan != "owned":
        raise UsageError(f"--owned {owned[0]}: expected --plan owned with it")
    needed = ("hardware", "source", *(() if plan == "owned" else ("amount",)))
    require({key: texts[key] for key in needed})
    machine = str(texts["hardware"])
    day = _day(texts["as_of"]) if texts["as_of"] else dt.datetime.now(dt.UTC).date()
    catalogue = own_catalogue()
    # Another amount on the same day corrects a price, so the id of that price is not avoided.
    used_ids = {
        price.id
        for price in catalogue.prices_of(machine)
        if (price.as_of, price.region) != (day, texts["region"])
    }
    defaults = {
        "id": dated_id(f"{machine}-{plan}", day, used_ids),
        "plan": plan,
        "provider": texts["provider"] or catalogue.machine(machine).provider,
        "currency": "USD",
        "billing": "prorated" if plan == "owned" else "per-second",
    }
    texts = {**texts, "as_of": day.isoformat()}
    values = spec_values("prices", {key: text or defaults.get(key) for key, text in texts.items()})
    if (current := _matching_current_price(catalogue, values)) is not None:
        current_values = current.model_dump(exclude_defaults=True)
        copied = [key for key in ("sku", "billing") if not texts[key] and key in current_values]
        values.update((key, current_values[key]) for key in copied)
        if copied:
            typer.echo(f"{' and '.join(copied)}: as in the current price {current.id}", err=True)
    if values["currency"] != "USD":
        typer.echo(f"{values['currency']}: {_NOT_COMPARED}", err=True)
    _write_new_spec(
        "prices", {**values, "owned": _owned_values(owned or []) if plan == "owned" else None}
    )


def _day(text: str) -> dt.date:
    try:
        return dt.datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        raise InputError(f"--as-of: expected {A_DAY}, got {text!r:.80}") from None


def _matching_current_price(catalogue: Catalogue, values: Mapping[str, Any]) -> Price | None:
    """The only current price with the plan and region in ``values``; None if none or several match.

    A price without a region matches any. Raises InputError if only ``values`` lacks a region.
    """
    plan = {key: values[key] for key in ("hardware", "provider", "plan", "currency")}
    current = current_prices(catalogue.prices_of(plan["hardware"]))
    same = [price for price in current if price.model_dump(include={*plan}) == plan]
    placed = next((price for price in same if price.region and not values["region"]), None)
    if placed is not None:
        raise InputError(
            f"--region: expected the region of the price, got none: {placed.id} is the current "
            f"price of this plan, for --region {placed.region}"
        )
    here = [price for price in same if price.region in {None, values["region"]}]
    return here[0] if len(here) == 1 else None


@app.command()
@_with_spec_options("models", "id", "name", "task", "example", "source")
def model(
    *,
    graph: Annotated[
        Path, typer.Option(metavar="FILE", help="The ONNX file; copied into models/ with its data.")
    ],
    dim: Annotated[
        list[str] | None, typer.Option(metavar="NAME=SIZE", help="A symbolic dimension's size.")
    ] = None,
    vocabulary: Annotated[
        list[str] | None,
        typer.Option(metavar="INPUT=SIZE", help="Number of valid indices in an input of tokens."),
    ] = None,
    loss: Annotated[
        str | None, typer.Option(help="Loss of the training. Default: no training, only inference.")
    ] = None,
    examples_per_epoch: Annotated[int, typer.Option(min=1, help="Examples of an epoch.")] = 1000,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of the training.")] = 1,
    **texts: str | None,
) -> None:
    """Declare a model in specs/models/, read from its ONNX file.

    By default, the id and the name come from the file's name.

    Example: epochcost new model --graph model.onnx --loss softmax_cross_entropy --task "image
      classification" --example "a grey 28 x 28 image" --source "our own"
    """
    loaded = load_step_graph(graph)
    defaults = {"id": graph.stem.lower().replace("_", "-"), "name": graph.stem}
    values = spec_values("models", {key: text or defaults.get(key) for key, text in texts.items()})
    training = (loss, examples_per_epoch, epochs) if loss else None
    values |= values_of_graph(graph, loaded, values, dim or [], vocabulary or [], training)
    copied = copy_to_models(graph)
    try:
        _write_new_spec("models", values)
    except BaseException:
        for file in copied:
            file.unlink()
        raise


def _write_new_spec(kind: str, values: dict[str, Any]) -> None:
    path = new_spec(Path.cwd(), kind, values)
    typer.echo(f"{path.relative_to(Path.cwd())} is new: review it, then run epochcost check")


def _gpu_from_catalogue(name: str, count: int) -> dict[str, Any]:
    devices = own_catalogue().devices or load_catalogue(BUNDLED).devices
    names = {name: device for device in devices.values() for name in device.names}
    device = names.get(name.casefold())
    if device is None:
        near = suggestion(name, devices) or suggestion(name, names)
        typer.echo(f"{name}: not in specs/devices{near}", err=True)
        return {"name": name, "count": count}
    shared = [key for key in Accelerator.model_fields if key != "name" and hasattr(device, key)]
    facts = {key: getattr(device, key) for key in shared}
    return {"name": device.name, "count": count, **facts}


def _owned_values(options: list[str]) -> dict[str, Any]:
    texts = pairs("--owned", options, "years=4")
    for key in texts:
        if key not in (*_OWNED, *_IF_ANY):
            choices = suggest_or_list(key, (*_OWNED, *_IF_ANY))
            raise InputError(f"--owned: expected a value of an owned machine, got {key!r}{choices}")
    keys = schema_of("prices")["properties"]["owned"]["properties"]
    missing = [key for key in _OWNED if key not in texts]
    if missing:
        needed = ", ".join(f"--owned {key}=NUMBER" for key in missing)
        share = "; utilisation is the share of its life in which the machine is used, such as 0.3"
        raise UsageError(f"missing: {needed}{share if 'utilisation' in missing else ''}")
    return {key: typed(text, keys[key]) for key, text in texts.items()}


def _detected_hardware_values() -> dict[str, Any]:
    # Imported here: no other command of this file needs the measuring packages.
    from epochcost.measure.environment import detect_environment  # noqa: PLC0415

    environment = detect_environment()
    rented = environment.instance
    name = rented.type if rented else (environment.cpu or "unnamed machine")
    by_model = group_by(environment.gpus, lambda gpu: gpu.name or "unnamed GPU")
    return {
        "id": rented.type.lower() if rented else "this-machine",
        "name": name,
        "provider": rented.provider if rented else "own",
        "vcpus": environment.logical_cpus,
        "memory_gib": _gib(environment.memory_bytes),
        "cpu": environment.cpu,
        "cores": environment.physical_cores,
        "source": f"read on the machine on {dt.datetime.now(dt.UTC).date().isoformat()}",
        "gpus": [_accelerator(model, gpus) for model, gpus in by_model.items()] or None,
    }


def _gib(size_bytes: int | None) -> Decimal | None:
    return None if size_bytes is None else round(Decimal(size_bytes) / _GIB, 1)


def _accelerator(name: str, gpus: Sequence[Gpu]) -> dict[str, Any]:
    limit = gpus[0].power_limit_watts
    return {
        "name": name,
        "count": len(gpus),
        "compute_capability": gpus[0].compute_capability,
        "memory_gib": _gib(gpus[0].memory_bytes),
        "power_watts": None if limit is None else Decimal(str(limit)),
    }
