"""`epochcost new`: write a valid spec from options, from this machine or from a graph."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Mapping, Sequence
from decimal import Decimal
from filecmp import cmp
from pathlib import Path
from typing import Annotated, Any

import typer
from onnx import ModelProto, TensorProto

from epochcost.cli.bundled import own_catalogue
from epochcost.cli.terminal import ids, pairs
from epochcost.errors import InputError, UsageError
from epochcost.results.environment import Environment, Gpu
from epochcost.specs.draft import new_spec, require, spec_values, typed
from epochcost.specs.hardware import Accelerator
from epochcost.specs.loader import BUNDLED, load_catalogue
from epochcost.specs.price import PLAN_KINDS
from epochcost.specs.schema import schema_of
from epochcost.specs.wording import suggestion
from onnxstep.graphs.binding import symbolic_dimensions
from onnxstep.graphs.loading import external_files, load_model
from onnxstep.graphs.parameters import DataInput, data_inputs

Id = Annotated[str | None, typer.Option("--id", help="The id, which names the file.")]
Name = Annotated[str | None, typer.Option(help="A readable name.")]
Source = Annotated[str | None, typer.Option(help="The source of the numbers.")]
app = typer.Typer(no_args_is_help=True, help="Write a new spec from options, a machine or a graph.")
_GIB = 2**30
# A reserved plan has more keys than options.
_PLANS = tuple(plan for plan, kind in PLAN_KINDS.items() if kind.table != "commitment")
_OWNED = ("purchase", "years", "utilisation", "power_watts", "electricity_per_kwh")
_FOLDER = Path("models")
_OF_CLASSES = ("softmax_cross_entropy", "nll")


@app.callback()
def _new() -> None:
    """Write a new spec from options, a machine or a graph."""


@app.command()
def hardware(
    detect_environment: Annotated[
        bool, typer.Option("--detect", help="Fill in the facts of this machine.")
    ] = False,
    identifier: Id = None,
    name: Name = None,
    provider: Annotated[str | None, typer.Option(help="The provider that rents it out.")] = None,
    vcpus: Annotated[str | None, typer.Option(metavar="NUMBER", help="Logical CPUs.")] = None,
    memory_gib: Annotated[str | None, typer.Option(metavar="NUMBER", help="In GiB.")] = None,
    cpu: Annotated[str | None, typer.Option(help="Make of the CPU.")] = None,
    cores: Annotated[str | None, typer.Option(metavar="NUMBER", help="Physical cores.")] = None,
    gpu: Annotated[str | None, typer.Option(help="A GPU's name in specs/devices/.")] = None,
    gpus: Annotated[int, typer.Option(min=1, help="Number of these GPUs.")] = 1,
    source: Source = None,
) -> None:
    """Declare a machine in specs/hardware/.

    Example: epochcost new hardware --detect --id workstation
    """
    detected = _detected() if detect_environment else {}
    options = {
        "id": identifier,
        "name": name,
        "provider": provider,
        "vcpus": vcpus,
        "memory_gib": memory_gib,
        "cpu": cpu,
        "cores": cores,
        "source": source,
    }
    texts = {key: str(value) for key, value in detected.items() if key in options}
    values = spec_values("hardware", {key: text or texts.get(key) for key, text in options.items()})
    if gpu is not None:
        values["accelerators"] = [_known_gpu(gpu, gpus)]
    _write(
        "hardware", {**values, "accelerators": values.get("accelerators") or detected.get("gpus")}
    )


@app.command()
def price(
    hardware: Annotated[
        str | None, typer.Option(help="The machine, by its id.", autocompletion=ids("hardware"))
    ] = None,
    amount: Annotated[str | None, typer.Option(metavar="NUMBER", help="Per hour.")] = None,
    plan: Annotated[str, typer.Option(help=f"{', '.join(_PLANS)}.")] = "on-demand",
    provider: Annotated[
        str | None, typer.Option(help="The seller.  [default: the machine's]")
    ] = None,
    sku: Annotated[str | None, typer.Option(help="The provider's name of the product.")] = None,
    region: Annotated[str | None, typer.Option(help="The provider's region.")] = None,
    currency: Annotated[str, typer.Option(help="A code of ISO 4217.")] = "USD",
    billing: Annotated[str, typer.Option(help="Id of a billing rule.")] = "per-second",
    as_of: Annotated[str | None, typer.Option(metavar="DATE", help="[default: today]")] = None,
    source: Source = None,
    identifier: Id = None,
    owned: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=NUMBER", help=f"Of an owned machine: {', '.join(_OWNED)}."),
    ] = None,
) -> None:
    """Declare a machine's price on a day, in specs/prices/.

    Example: epochcost new price --hardware g6.xlarge --amount 0.8048 --source "the provider's
      list"
    """
    needed = {"hardware": hardware, "source": source}
    require(needed if plan == "owned" else needed | {"amount": amount})
    assert hardware is not None
    day = as_of or dt.datetime.now(dt.UTC).date().isoformat()
    options = {
        "id": identifier or f"{hardware}-{plan}-{day[:7]}",
        "hardware": hardware,
        "plan": plan,
        "provider": provider or _provider_of(hardware),
        "sku": sku,
        "region": region,
        "amount": amount,
        "currency": currency,
        "billing": billing,
        "source": source,
        "as_of": day,
    }
    if plan == "owned":
        values = spec_values("prices", {**options, "billing": "prorated"})
        values["owned"] = _owned_values(owned or [])
    else:
        values = spec_values("prices", options)
    _write("prices", values)


@app.command()
def model(
    graph: Annotated[
        Path, typer.Option(metavar="FILE", help="Its ONNX file; copied into models/ with its data.")
    ],
    identifier: Annotated[
        str | None, typer.Option("--id", help="The id.  [default: the file's name]")
    ] = None,
    name: Annotated[str | None, typer.Option(help="A readable name.")] = None,
    task: Annotated[str | None, typer.Option(help="Its task, in a few words.")] = None,
    example: Annotated[str | None, typer.Option(help="A description of one example.")] = None,
    source: Annotated[str | None, typer.Option(help="Where it comes from.")] = None,
    dim: Annotated[
        list[str] | None, typer.Option(metavar="NAME=SIZE", help="A symbolic dimension's size.")
    ] = None,
    vocabulary: Annotated[
        list[str] | None,
        typer.Option(metavar="INPUT=SIZE", help="Number of valid indices of an input."),
    ] = None,
    loss: Annotated[
        str | None, typer.Option(help="Loss of its training. Default: inference only.")
    ] = None,
    examples_per_epoch: Annotated[int, typer.Option(min=1, help="Of a training.")] = 1000,
    epochs: Annotated[int, typer.Option(min=1, help="Of a training.")] = 1,
) -> None:
    """Declare a model in specs/models/, read from its ONNX file.

    Example: epochcost new model --graph model.onnx --loss softmax_cross_entropy --task "image
      classification" --example "a grey 28 x 28 image" --source "our own"
    """
    loaded = load_model(graph)
    inputs = data_inputs(loaded)
    if any(data_input.name.startswith("past_key_values.") for data_input in inputs):
        raise InputError(
            f"{graph}: expected a graph without a cache, got a decoder's: declare its form in a "
            "table [decoder], as docs/how-to/add-a-decoder.md says"
        )
    options = {
        "id": identifier or graph.stem.lower().replace("_", "-"),
        "name": name or graph.stem,
        "task": task,
        "example": example,
        "source": source,
    }
    values = spec_values("models", options)
    values |= _declared_inputs(loaded, inputs, dim or [], vocabulary or [])
    values["training"] = _training(loaded, loss, examples_per_epoch, epochs) if loss else None
    values["inference"] = {"batch_sizes": [1, 8, 32]}
    copied = _copied(graph)
    try:
        _write("models", {**values, "graph": graph.name})
    except BaseException:
        for file in copied:
            file.unlink()
        raise


def _write(kind: str, values: dict[str, Any]) -> None:
    """Write the spec into the project and print its path; raises as ``new_spec`` does."""
    path = new_spec(Path.cwd(), kind, values)
    typer.echo(f"{path.relative_to(Path.cwd())} is new: review it, then run epochcost check")


def _known_gpu(name: str, count: int) -> dict[str, Any]:
    """Fill the accelerator table from specs/devices (the project's, else the bundled one)."""
    devices = own_catalogue().devices or load_catalogue(BUNDLED).devices
    names = {name: device for device in devices.values() for name in device.names}
    device = names.get(name.casefold())
    if device is None:
        typer.echo(f"{name}: not in specs/devices{suggestion(name, names)}", err=True)
        return {"name": name, "count": count}
    shared = [key for key in Accelerator.model_fields if key != "name" and hasattr(device, key)]
    facts = {key: getattr(device, key) for key in shared}
    stated = {key: value for key, value in facts.items() if value is not None}
    return {"name": device.name, "count": count, **stated}


def _provider_of(machine: str) -> str | None:
    """The provider in the spec of a machine, or None."""
    return own_catalogue().machine(machine).provider


def _owned_values(options: list[str]) -> dict[str, Any]:
    texts = pairs("--owned", options, "years=4")
    keys = schema_of("prices")["properties"]["owned"]["properties"]
    missing = [key for key in _OWNED if key not in texts]
    if missing:
        raise UsageError(f"missing: {', '.join(f'--owned {key}=NUMBER' for key in missing)}")
    return {key: typed(text, keys.get(key, {})) for key, text in texts.items()}


def _detected() -> dict[str, Any]:
    """Facts that were detected on this machine, by the key of a spec."""
    # Imported here: no other command of this file needs the measuring packages.
    from epochcost.measure.environment import detect_environment  # noqa: PLC0415

    environment = detect_environment()
    rented = environment.instance
    name = rented.type if rented else (environment.cpu or "unnamed machine")
    values = {
        "id": rented.type.lower() if rented else "this-machine",
        "name": name,
        "provider": rented.provider if rented else "own",
        "vcpus": environment.logical_cpus,
        "memory_gib": _gib(environment.memory_bytes),
        "cpu": environment.cpu,
        "cores": environment.physical_cores,
        "source": f"read on the machine on {dt.datetime.now(dt.UTC).date().isoformat()}",
        "gpus": _gpus(environment),
    }
    return {key: value for key, value in values.items() if value}


def _gib(size_bytes: int | None) -> Decimal | None:
    return None if size_bytes is None else round(Decimal(size_bytes) / _GIB, 1)


def _gpus(environment: Environment) -> list[dict[str, Any]]:
    """Make a table of a spec for each kind of GPU, in the order of detection."""
    kinds: dict[str, list[Gpu]] = {}
    for gpu in environment.gpus:
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


def _declared_inputs(
    loaded: ModelProto, inputs: Sequence[DataInput], dim: list[str], vocabulary: list[str]
) -> dict[str, Any]:
    """Read dimensions and inputs of a graph for a spec; raises UsageError if sizes are missing."""
    dimensions = _sizes(loaded, inputs, _whole_numbers("--dim", dim)) or None
    sizes = _whole_numbers("--vocabulary", vocabulary)
    _require_sizes("vocabulary", [each.name for each in inputs if _is_index(each)], sizes)
    return {
        "dimensions": dimensions,
        "inputs": [_input(data_input, sizes) for data_input in inputs],
    }


def _whole_numbers(option: str, texts: Sequence[str]) -> dict[str, int]:
    numbers = pairs(option, texts, "sequence=128")
    for name, size in numbers.items():
        if not size.isdecimal() or not int(size):
            raise InputError(f"{option}: expected a whole number, {name}=128, got {name}={size}")
    return {name: int(size) for name, size in numbers.items()}


def _sizes(
    loaded: ModelProto, inputs: Sequence[DataInput], sizes: dict[str, int]
) -> dict[str, int]:
    """Sizes of the symbolic dimensions except the batch, which is the inputs' first dimension."""
    batches = {data_input.shape[0] for data_input in inputs if data_input.shape}
    names = [name for name in symbolic_dimensions(loaded) if name not in batches]
    for name in sizes:
        if name not in names:
            raise InputError(f"--dim: expected one of {', '.join(names) or 'none'}, got {name}")
    _require_sizes("dim", names, sizes)
    return {name: sizes[name] for name in names}


def _require_sizes(option: str, names: Sequence[str], sizes: Mapping[str, int]) -> None:
    missing = [f"--{option} {name}=SIZE" for name in names if name not in sizes]
    if missing:
        raise UsageError(f"missing: {', '.join(missing)}")


def _input(data_input: DataInput, sizes: dict[str, int]) -> dict[str, Any]:
    """Declare an input for a spec: numbers from 0 to 1, or indices of a vocabulary."""
    if _is_index(data_input):
        return {"name": data_input.name, "vocabulary": sizes[data_input.name]}
    return {"name": data_input.name, "low": Decimal(0), "high": Decimal(1)}


def _is_index(data_input: DataInput) -> bool:
    return data_input.elem_type in (TensorProto.INT64, TensorProto.INT32)


def _training(loaded: ModelProto, loss: str, examples: int, epochs: int) -> dict[str, Any]:
    """Declare a training by plain gradient descent, a placeholder that users replace."""
    output = loaded.graph.output[0]
    last = output.type.tensor_type.shape.dim[-1].dim_value
    target = (
        {"classes": max(2, last)}
        if loss in _OF_CLASSES
        else {"low": Decimal(0), "high": Decimal(1)}
    )
    return {
        "loss": loss,
        "output": output.name,
        "target": target,
        "optimizer": {"name": "sgd", "learning_rate": Decimal("0.01")},
        "batch_sizes": [32],
        "examples_per_epoch": examples,
        "epochs": epochs,
    }


def _copied(graph: Path) -> list[Path]:
    """Copy a graph and its external data to models/, unless they are there; return the new copies.

    Raises InputError, and copies nothing, if another model's file has one of the names.
    """
    copies = [
        (graph.parent / name, _FOLDER / name) for name in (graph.name, *external_files(graph))
    ]
    new = [
        (file, copy)
        for file, copy in copies
        if not (copy.exists() and cmp(copy, file, shallow=False))
    ]
    for file, copy in new:
        if copy.exists():
            raise InputError(
                f"{copy}: expected an unused name, but another model's file has it: rename {file}"
                + ("" if file == graph else ", by exporting again under another name")
            )
    for file, copy in new:
        copy.parent.mkdir(parents=True, exist_ok=True)
        partial = copy.with_name(f".{copy.name}.partial")
        shutil.copyfile(file, partial)
        partial.replace(copy)
    return [copy for _, copy in new]
