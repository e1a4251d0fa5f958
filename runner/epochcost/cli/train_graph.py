"""`epochcost train-graph`: the differentiator by itself, on any ONNX file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import onnx
import typer
from onnx import ModelProto

from epochcost.cli.terminal import Format, pairs, print_json
from epochcost.errors import CapabilityError, InputError, UsageError
from epochcost.plan.variant import NO_BF16_ON_CPUS
from onnxstep import LeftOut, TrainingStep, evaluation_graph, training_step
from onnxstep.graphs.choices import first_names
from onnxstep.graphs.counting import flops
from onnxstep.graphs.exported import separated
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import materialise, with_parameters
from onnxstep.graphs.peak_memory import peak_activation_bytes
from onnxstep.objective import keep_term_outputs, terms_of

LOSS_HELP = "softmax_cross_entropy, sigmoid_cross_entropy, nll, mse, l1, huber or own_output."
PATTERN_HELP = ", or a pattern such as '*.bias'. Repeatable."
OPTIMIZER_HELP = "sgd, momentum, nesterov, rmsprop, adagrad, adadelta, adam or adamw."


def train_graph(
    model: Annotated[Path, typer.Argument(help="Any ONNX file, with weights or weightless.")],
    destination: Annotated[Path, typer.Option("--out", "-o", help="The step to write, .onnx.")],
    loss: Annotated[str, typer.Option(help=LOSS_HELP)] = "softmax_cross_entropy",
    optimizer: Annotated[str, typer.Option(help=OPTIMIZER_HELP)] = "sgd",
    output: Annotated[
        str | None, typer.Option(help="The output that the loss is taken of.")
    ] = None,
    dim: Annotated[
        list[str] | None, typer.Option(help="Size of a symbolic dimension: batch=32. Repeatable.")
    ] = None,
    freeze: Annotated[
        list[str] | None, typer.Option(help=f"A parameter that is not trained{PATTERN_HELP}")
    ] = None,
    wrt: Annotated[
        list[str] | None, typer.Option(help=f"Train this and nothing else{PATTERN_HELP}")
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(help=f"A constant or buffer of the file to train, too{PATTERN_HELP}"),
    ] = None,
    carry: Annotated[
        list[str] | None,
        typer.Option(help="An input that is an output in the next step: h0=hn. Repeatable."),
    ] = None,
    provider: Annotated[
        Literal["cpu", "cuda"] | None,
        typer.Option(help="Where it will run; without it the step runs on any provider."),
    ] = None,
    clip_norm: Annotated[
        float | None, typer.Option(help="Bound of the gradients' global norm.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Makes Dropout and first values repeatable.")
    ] = None,
    precision: Annotated[
        Literal["fp32", "fp16", "bf16"],
        typer.Option(help="What it computes in; weights, loss and update stay fp32."),
    ] = "fp32",
    rematerialise: Annotated[
        Literal["none", "sqrt"],
        typer.Option(help="sqrt: compute segments of the forward pass again, to keep less of it."),
    ] = "none",
    form: Annotated[Format, typer.Option("--format")] = "text",
) -> None:
    """Write a model's training step as one ONNX graph.

    Example: epochcost train-graph model.onnx --dim batch=32 --optimizer rmsprop -o step.onnx
    """
    if destination.suffix != ".onnx":
        raise UsageError(f"--out: expected a file name that ends in .onnx, got {destination}")
    if precision == "bf16" and provider != "cuda":
        raise CapabilityError(f"--precision bf16: {NO_BF16_ON_CPUS}; for a GPU add --provider cuda")
    dimensions = _dimensions(dim or ())
    loaded = separated(load_model(model))
    for option, patterns in {"--train": train, "--wrt": wrt}.items():
        loaded = with_parameters(option, loaded, patterns or [])
    step = training_step(
        loaded,
        loss=loss,
        optimizer=optimizer,
        output=output,
        freeze=freeze or (),
        wrt=wrt or (),
        dimensions=dimensions,
        seed=seed,
        clip_norm=clip_norm,
        provider=provider,
        carry=pairs("--carry", carry or (), "h0=hn"),
        precision=precision,
        rematerialise=rematerialise,
    )
    asked = keep_term_outputs(loaded, terms_of(loss, output))
    forward = evaluation_graph(asked, loss=loss, output=output, dimensions=dimensions)
    _write(step, loaded, destination, seed or 0)
    written = _Written(step, flops(forward), model, destination)
    if form == "json":
        print_json(_as_json(written))
    else:
        typer.echo(_as_text(written))


@dataclass(frozen=True)
class _Written:
    """What was made of which file, and the arithmetic of its forward pass."""

    step: TrainingStep
    forward_flops: int
    source: Path
    destination: Path

    @property
    def backward_flops(self) -> int:
        return flops(self.step.model) - self.forward_flops

    @property
    def activation_bytes(self) -> int:
        return peak_activation_bytes(self.step.model)


def _dimensions(options: Sequence[str]) -> dict[str, int]:
    sizes = pairs("--dim", options, "batch=32")
    for name, size in sizes.items():
        if not size.isdecimal():
            raise InputError(f"--dim: expected a size, such as {name}=32, got {name}={size}")
    return {name: int(size) for name, size in sizes.items()}


def _write(step: TrainingStep, model: ModelProto, destination: Path, seed: int) -> None:
    values = materialise(model, seed)
    states = {
        c.input: np.full(c.shape, c.fill, onnx.helper.tensor_dtype_to_np_dtype(c.elem_type))
        for c in step.carried
    }
    arrays: dict[str, Any] = {name: values.get(name, first) for name, first in states.items()}
    arrays |= {name: values[name] for name in step.frozen}
    try:
        np.savez(initial_path(destination), allow_pickle=False, **arrays)
        onnx.save(step.model, destination)
    except OSError as error:
        raise CapabilityError(f"{destination}: cannot be written: {error.strerror}") from None


def initial_path(destination: Path) -> Path:
    """Where the first values of parameters and states stand: beside the step."""
    return destination.with_suffix(".initial.npz")


def _as_json(written: _Written) -> dict[str, Any]:
    step = written.step
    carried = [
        {"input": c.input, "output": c.output, "shape": c.shape, "role": c.role}
        for c in step.carried
    ]
    return {
        "inputs": step.inputs,
        "frozen": step.frozen,
        "target": step.target,
        "learning_rate": step.learning_rate,
        "loss": step.loss,
        "carried": carried,
        "trained": step.trained_set.trained,
        "not_trained": {tensor.name: tensor.reason for tensor in step.trained_set.left_out},
        "warnings": step.trained_set.doubts,
        "nodes": len(step.model.graph.node),
        "flops": {"forward": written.forward_flops, "backward": written.backward_flops},
        "peak_activation_bytes": written.activation_bytes,
    }


def _as_text(written: _Written) -> str:
    step, to = written.step, written.destination
    fed = filter(None, [*step.inputs, step.target, step.learning_rate])
    lines = [
        f"{to}: one training step of {written.source}, {len(step.model.graph.node)} nodes",
        f"  parameters   {_size(step, 'parameter')}",
        f"    {first_names(step.parameters)}",
        *_left_out_lines(step.trained_set.left_out),
        f"  state        {_size(step, 'state')}",
        f"  arithmetic   {written.forward_flops:,} FLOPs forward, "
        f"{written.backward_flops:,} backward",
        f"  activations  {written.activation_bytes:,} bytes at most",
        f"  feed         {', '.join(fed)}",
        f"  read         {step.loss}",
        f"First values: {initial_path(to)}.",
        "After each step feed every <name>.next as <name>.",
    ]
    return "\n".join(lines)


def _size(step: TrainingStep, role: str) -> str:
    tensors = [carried for carried in step.carried if carried.role == role]
    numbers = sum(math.prod(carried.shape) for carried in tensors)
    return f"{numbers:,} numbers in {len(tensors)} tensors"


def _left_out_lines(left_out: Sequence[LeftOut]) -> Iterator[str]:
    """How much is not trained, and what for which reason; nothing where all is."""
    if left_out:
        numbers = sum(tensor.size for tensor in left_out)
        yield f"  not trained  {numbers:,} numbers in {len(left_out)} tensors"
    for reason in dict.fromkeys(tensor.reason for tensor in left_out):
        names = [tensor.name for tensor in left_out if tensor.reason == reason]
        yield f"    {first_names(names)}: {reason}"
