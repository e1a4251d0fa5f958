"""The command `onnxstep`: write a model's training step and the first values of its weights."""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import ModelProto

from onnxstep.adapters import ADAPTERS, with_adapters
from onnxstep.errors import CapabilityError, Error, InputError, ModelWarning
from onnxstep.graphs.choices import first_names
from onnxstep.graphs.cuda_kernels import KernelCheck, check_kernels
from onnxstep.graphs.exported import separated
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import with_parameters
from onnxstep.options import StepOptions
from onnxstep.step import TrainingStep, first_values, training_step
from onnxstep.trained_set import LeftOut

_INTERRUPTED_CODE = 130
_BFLOAT16 = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16)
_NO_BF16_ON_CPUS = (
    "--precision bf16: ONNX Runtime's CPU provider has no bf16 kernels for matrix products and "
    "cannot run such a graph; for a GPU add --provider cuda"
)


def main() -> None:
    """Run the command `onnxstep`; print an ``Error`` in one line and exit with its exit code."""
    warnings.formatwarning = _warning_line
    try:
        _run(_parser().parse_args())
    except Error as error:
        _fail(str(error), error.exit_code)
    except OSError as error:
        _fail(f"{error.filename or 'output'}: {error.strerror}", CapabilityError.exit_code)
    except MemoryError:
        _fail("the step needs more memory than this machine has", CapabilityError.exit_code)
    except KeyboardInterrupt:
        _fail("interrupted", _INTERRUPTED_CODE)


def _fail(message: str, code: int) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(code)


_standard_warning = warnings.formatwarning


def _warning_line(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> str:
    if issubclass(category, ModelWarning):
        return f"warning: {message}\n"
    return _standard_warning(message, category, *where, **more)


_CHOSEN = {
    "--loss": "softmax_cross_entropy (default), sigmoid_cross_entropy, nll, mse, l1, huber or "
    "own_output",
    "--optimizer": "sgd (default), momentum, nesterov, rmsprop, adagrad, adadelta, adam or adamw",
    "--output": "the output that the loss is computed from",
}
_PATTERN = ", or a pattern such as '*.bias'"
_REPEATABLE = {
    "--dim": "size of a symbolic dimension: batch=32",
    "--freeze": f"a parameter that is not trained{_PATTERN}",
    "--wrt": f"a parameter to train, and no others{_PATTERN}",
    "--train": f"a constant or buffer of the file to train as well{_PATTERN}",
    "--lora-targets": "with --lora-rank: a weight that gets an adapter"
    f"{_PATTERN} (default: every weight of a product)",
    "--carry": "an input and the output that feeds it in the next step: h0=hn",
}
_LISTED = {
    "--precision": (("fp32", "fp16", "bf16"), "type of the arithmetic; weights stay fp32"),
    "--rematerialise": (("none", "sqrt"), "sqrt: recompute activations, for less memory"),
    "--format": (("text", "json"), "format of the printed report"),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="onnxstep",
        description="Write a model's training step as one ONNX graph.",
        epilog="example: onnxstep model.onnx --dim batch=32 --optimizer adam -o step.onnx",
    )
    add = parser.add_argument
    add("model", type=Path, help="any ONNX file, with weights or weightless")
    add("-o", "--out", type=_destination, required=True, help="the step to write, .onnx")
    for name, text in _CHOSEN.items():
        add(name, default=argparse.SUPPRESS, help=text)
    for name, text in _REPEATABLE.items():
        add(name, action="append", default=[], help=f"{text}; repeatable")
    for name, (choices, text) in _LISTED.items():
        add(name, choices=choices, default=choices[0], help=text)
    add("--provider", choices=("cpu", "cuda"), help="where the step will run (default: anywhere)")
    text = "with --provider cpu: faster convolutions on x86-64 processors"
    add("--blocked-convolutions", action="store_true", help=text)
    text = "train low-rank adapters (LoRA) of this rank; other parameters only with --wrt"
    add("--lora-rank", type=int, metavar="RANK", help=text)
    add("--lora-alpha", type=float, help="scale adapters by ALPHA / RANK (default: 1)")
    add("--clip-norm", type=float, help="upper bound of the gradients' global 2-norm")
    add("--seed", type=int, help="seed of Dropout and of drawn first values")
    return parser


def _destination(text: str) -> Path:
    if not text.endswith(".onnx"):
        raise argparse.ArgumentTypeError(f"expected a file name that ends in .onnx, got {text}")
    return Path(text)


def _run(arguments: argparse.Namespace) -> None:
    if arguments.precision == "bf16" and arguments.provider != "cuda":
        raise CapabilityError(_NO_BF16_ON_CPUS)
    if arguments.lora_rank is None and (arguments.lora_targets or arguments.lora_alpha is not None):
        raise InputError("--lora-targets and --lora-alpha need --lora-rank")
    if arguments.out.resolve() == arguments.model.resolve():
        raise InputError(f"--out: expected another file than the model, got {arguments.out}")
    options = _options(arguments)
    model = separated(load_model(arguments.model))
    for name, patterns in {"--train": arguments.train, "--wrt": arguments.wrt}.items():
        model = with_parameters(name, model, patterns)
    if arguments.lora_rank is not None:
        targets = arguments.lora_targets or ["*"]
        model = with_adapters(
            model, arguments.lora_rank, arguments.lora_alpha, targets, options.seed or 0
        )
        options = replace(options, wrt=[*options.wrt, *ADAPTERS])
    step = training_step(model, options)
    _write(step, model, arguments.out, options.seed or 0)
    kernels = check_kernels(step.model) if arguments.provider == "cuda" else None
    if arguments.format == "json":
        print(json.dumps(_report_values(step, kernels), indent=2))
    else:
        print(_report_text(step, arguments.model, arguments.out, kernels))


def _options(arguments: argparse.Namespace) -> StepOptions:
    names = {field.name for field in fields(StepOptions)}
    values = {name: value for name, value in vars(arguments).items() if name in names}
    values["dimensions"] = _dimensions(arguments.dim)
    values["carry"] = _pairs("--carry", arguments.carry, "h0=hn")
    return StepOptions(**values)


def _dimensions(options: Sequence[str]) -> dict[str, int]:
    sizes = _pairs("--dim", options, "batch=32")
    for name, size in sizes.items():
        if not size.isdecimal():
            raise InputError(f"--dim: expected a size, such as {name}=32, got {name}={size}")
    return {name: int(size) for name, size in sizes.items()}


def _pairs(option: str, texts: Sequence[str], example: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name or not value:
            raise InputError(f"{option}: expected name=value, such as {example}, got {text!r}")
        if name in pairs:
            raise InputError(f"{option}: expected each name once, got {name!r} twice")
        pairs[name] = value
    return pairs


def _write(step: TrainingStep, model: ModelProto, destination: Path, seed: int) -> None:
    arrays = first_values(step, model, seed)
    try:
        # np.savez refuses arrays that are called "file".
        with zipfile.ZipFile(_initial_path(destination), "w") as archive:
            for name, array in arrays.items():
                # NumPy would write bfloat16 as two bytes of no type, V2.
                bits = array.view(np.uint16) if array.dtype == _BFLOAT16 else array
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, bits, allow_pickle=False)
        onnx.save(step.model, destination)
    except OSError as error:
        raise CapabilityError(f"{destination}: cannot be written: {error.strerror}") from None


def _initial_path(destination: Path) -> Path:
    return destination.with_suffix(".initial.npz")


def _report_values(step: TrainingStep, kernels: KernelCheck | None) -> Mapping[str, Any]:
    """The values of the command's JSON report; ``kernels`` is None unless the provider is CUDA."""
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
        **({"cuda_kernels": asdict(kernels)} if kernels else {}),
    }


def _report_text(
    step: TrainingStep, source: Path, destination: Path, kernels: KernelCheck | None
) -> str:
    types = {carried.elem_type for carried in step.carried}
    bits = " (bfloat16 as bits in uint16)" if onnx.TensorProto.BFLOAT16 in types else ""
    fed = filter(None, [*step.inputs, step.target, step.learning_rate])
    pairs = [(c.output, c.input) for c in step.carried if c.output != f"{c.input}.next"]
    following = [f"{new} as {old}" for new, old in [("every <name>.next", "<name>"), *pairs]]
    lines = [
        f"{destination}: one training step of {source}, {len(step.model.graph.node)} nodes",
        f"  parameters   {_size_of_role(step, 'parameter')}",
        f"    {first_names(step.parameters)}",
        *_untrained_tensor_lines(step.trained_set.left_out),
        f"  state        {_size_of_role(step, 'state')}",
        f"  feed         {', '.join(fed)}",
        f"  read         {step.loss}",
        *([f"  kernels      {kernels}"] if kernels else []),
        f"First values: {_initial_path(destination)}{bits}.",
        f"After each step feed {', '.join(following)}.",
    ]
    return "\n".join(lines)


def _size_of_role(step: TrainingStep, role: str) -> str:
    tensors = [carried for carried in step.carried if carried.role == role]
    numbers = sum(math.prod(carried.shape) for carried in tensors)
    return f"{numbers:,} numbers in {len(tensors)} tensors"


def _untrained_tensor_lines(left_out: Sequence[LeftOut]) -> Iterator[str]:
    if left_out:
        numbers = sum(tensor.size for tensor in left_out)
        yield f"  not trained  {numbers:,} numbers in {len(left_out)} tensors"
    for reason in dict.fromkeys(tensor.reason for tensor in left_out):
        names = [tensor.name for tensor in left_out if tensor.reason == reason]
        yield f"    {first_names(names)}: {reason}"
