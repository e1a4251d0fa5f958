# /// script
# requires-python = ">=3.11"
# dependencies = ["epochcost[run]", "torch==2.13.0", "onnxscript>=0.7", "transformers>=5"]
# ///
"""Export real architectures and compare gradients and training steps with PyTorch's.

    python benchmarks/exports/compare.py [NAME …] [--steps 20]

Both of PyTorch's exporters export each architecture. The same weights, inputs and cotangents then
go through `vjp_graph` on ONNX Runtime in float32, through `vjp_graph` on onnx's reference evaluator
in float64, and through PyTorch in float32 and float64. Prints the relative error of all gradients
as one vector against PyTorch's gradients in float64, and the relative error of the worst parameter.
Then runs training steps with momentum on ONNX Runtime and PyTorch, and prints the largest relative
difference of a loss. The last line counts the files with losses within 1e-4 over all steps, and the
files whose float32 gradients are within 1.6e-6 or twice PyTorch's float32 error.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import logging
import sys
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import onnx
import onnxruntime
import torch
from architectures import ARCHITECTURES, Architecture
from published import PUBLISHED
from torch import nn

from epochcost.errors import ModelError
from onnxstep import Momentum, StepOptions, training_step, vjp_graph
from onnxstep.graphs.loading import load_model_bytes
from onnxstep.graphs.parameters import materialise

TESTS = Path(__file__).parents[2] / "runner/onnxstep/tests"

_HEADS = ("PyTorch", "float32", "worst", "float64", "worst", "losses")
_RATE = 0.05
_GRADIENTS_WITHIN, _LOSSES_WITHIN = 1.6e-6, 1e-4
# A parameter can be the worst only above this share of the whole norm: a key's bias in attention,
# for example, has a gradient of zero but for rounding.
_LEAST_SHARE = 1e-3
Gradients = Mapping[str, np.ndarray]
Exporter = Callable[[nn.Module, torch.Tensor], onnx.ModelProto]
ResultT = TypeVar("ResultT")


def by_dynamo(module: nn.Module, batch: torch.Tensor) -> onnx.ModelProto:
    """Export a module with PyTorch's newer exporter."""
    program = torch.onnx.export(module, (batch,), dynamo=True, optimize=False, verbose=False)
    return load_model_bytes(program.model_proto.SerializeToString())


def by_tracing(module: nn.Module, batch: torch.Tensor) -> onnx.ModelProto:
    """Export a module with PyTorch's older exporter."""
    buffer = io.BytesIO()
    torch.onnx.export(
        module,
        (batch,),
        buffer,
        dynamo=False,
        opset_version=17,
        do_constant_folding=False,
        verbose=False,
    )
    return load_model_bytes(buffer.getvalue())


EXPORTERS: Mapping[str, Exporter] = {"dynamo": by_dynamo, "traced": by_tracing}


@dataclass(frozen=True)
class Errors:
    """Relative errors of gradients: of all gradients as one vector, and of the worst parameter."""

    whole: float
    worst: float


def in_pytorch(module: nn.Module, batch: torch.Tensor, u: torch.Tensor) -> Gradients:
    """PyTorch's gradients in the precision of the batch's cotangent ``u``."""
    copied = copy.deepcopy(module).to(u.dtype)
    copied(batch).backward(u)
    return {
        name: weight.grad.numpy()
        for name, weight in copied.named_parameters()
        if weight.grad is not None  # of a frozen one, or one that this forward pass never reads
    }


def in_single(
    module: nn.Module,
    export: Exporter,
    trained: Collection[str],
    batch: torch.Tensor,
    u: torch.Tensor,
) -> Gradients:
    """The gradients of epochcost's gradient graph on ONNX Runtime in float32."""
    model = export(module, batch)
    wrt = _trained(model, module, trained)
    session = onnxruntime.InferenceSession(
        vjp_graph(model, list(wrt.values())).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    feeds = _feeds(model, batch.numpy(), u.numpy())
    got = session.run([f"{name}_gradient" for name in wrt.values()], feeds)
    return dict(zip(wrt, got, strict=True))


def in_double(
    module: nn.Module,
    export: Exporter,
    trained: Collection[str],
    batch: torch.Tensor,
    u: torch.Tensor,
) -> Gradients:
    """The gradients of epochcost's gradient graph on the reference evaluator in float64."""
    from oracle.evaluators import reference  # part of the library's tests

    model = export(copy.deepcopy(module).double(), _double(batch))
    wrt = _trained(model, module, trained)
    run = reference(vjp_graph(model, list(wrt.values())))
    got = run(_feeds(model, _double(batch).numpy(), u.double().numpy()))
    return {name: got[f"{initializer}_gradient"] for name, initializer in wrt.items()}


def _trained(model: onnx.ModelProto, module: nn.Module, trained: Collection[str]) -> dict[str, str]:
    """The initializer of each trained parameter.

    The initializer of a tied parameter may have any of the parameter's names.
    """
    stored = {tensor.name for tensor in model.graph.initializer}
    names: dict[int, list[str]] = {}
    for name, weight in module.named_parameters(remove_duplicate=False):
        names.setdefault(id(weight), []).append(name)
    initializers = {
        tied[0]: [name for name in tied if name in stored]
        for tied in names.values()
        if tied[0] in trained
    }
    missing = [name for name, names in initializers.items() if not names]
    if missing:
        raise ModelError(f"the export has no initializer {missing}")
    return {name: names[0] for name, names in initializers.items()}


def _feeds(model: onnx.ModelProto, batch: np.ndarray, u: np.ndarray) -> dict[str, np.ndarray]:
    [data] = [value.name for value in model.graph.input]
    [scores] = [value.name for value in model.graph.output]
    return {data: batch, f"{scores}_cotangent": u}


def compared(ours: Gradients, theirs: Gradients) -> Errors:
    """Relative errors of the gradients ``ours`` against ``theirs`` in the Euclidean norm."""
    off = {name: np.linalg.norm(ours[name] - exact) for name, exact in theirs.items()}
    size = {name: np.linalg.norm(exact) for name, exact in theirs.items()}
    whole = float(np.linalg.norm(list(size.values())))
    counted = [name for name in theirs if size[name] > _LEAST_SHARE * whole]
    return Errors(
        float(np.linalg.norm(list(off.values())) / whole),
        float(max(off[name] / size[name] for name in counted)),
    )


def training_error(
    module: nn.Module, export: Exporter, batches: list[tuple[torch.Tensor, torch.Tensor]]
) -> float:
    """The largest relative difference between epochcost's and PyTorch's losses in float32."""
    model = export(copy.deepcopy(module).eval(), batches[0][0])
    step = training_step(model, StepOptions(optimizer=Momentum(0.9)))
    session = onnxruntime.InferenceSession(
        step.model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    values = materialise(model)
    feeds = {c.input: values.get(c.input, np.zeros(c.shape, np.float32)) for c in step.carried}
    feeds |= {name: values[name] for name in step.frozen}
    feeds[step.learning_rate] = np.array(_RATE, np.float32)
    learner = copy.deepcopy(module).train()
    optimizer = torch.optim.SGD(learner.parameters(), _RATE, momentum=0.9)
    differences = []
    for batch, target in batches:
        data = {step.inputs[0]: batch.numpy(), str(step.target): target.numpy()}
        names = [step.loss, *(c.output for c in step.carried)]
        got = session.run(names, {**feeds, **data})
        feeds |= dict(zip((c.input for c in step.carried), got[1:], strict=True))
        optimizer.zero_grad()
        scores = learner(batch)
        loss = nn.functional.cross_entropy(scores.flatten(0, -2), target.flatten())
        loss.backward()
        optimizer.step()
        differences.append(abs(float(got[0]) / loss.item() - 1))
    return float(np.max(differences))  # NaN if any loss is NaN, unlike the built-in max


def _double(batch: torch.Tensor) -> torch.Tensor:
    return batch.double() if batch.is_floating_point() else batch


def _scattered(module: nn.Module, generator: torch.Generator) -> nn.Module:
    """Make all tensors different, because PyTorch's older exporter would merge equal tensors."""
    with torch.no_grad():
        for tensor in [*module.parameters(), *module.buffers()]:
            if tensor.is_floating_point():
                tensor.add_(0.1 * torch.rand(tensor.shape, generator=generator))
    return module


@dataclass(frozen=True)
class Row:
    """The errors of one file by column, None for a failed comparison, and the first failure."""

    pytorch: Errors
    single: Errors | None
    double: Errors | None
    losses: float | None
    failed: str

    @property
    def render(self) -> str:
        """The errors in columns, and the first failure after them."""
        figures = [self.pytorch.whole]
        for errors in (self.single, self.double):
            figures += [errors.whole, errors.worst] if errors else [None, None]
        cells = ("" if figure is None else f"{figure:.1e}" for figure in (*figures, self.losses))
        return " ".join([*(f"{cell:>10}" for cell in cells), self.failed])

    @property
    def has_gradients(self) -> bool:
        """Whether the gradients' error is within the bound, or twice PyTorch's float32 error."""
        bound = max(_GRADIENTS_WITHIN, 2 * self.pytorch.whole)
        return self.single is not None and self.single.whole <= bound

    @property
    def follows(self) -> bool:
        """Whether every loss is within the bound around PyTorch's loss."""
        return self.losses is not None and self.losses <= _LOSSES_WITHIN


def row(architecture: Architecture, exporter: str, steps: int) -> Row:
    """Compare one architecture, exported by one exporter, with PyTorch."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    module = _scattered(architecture.build(), generator).eval()
    export = EXPORTERS[exporter]
    batch = architecture.inputs(generator)
    u = torch.randn(module(batch).shape, generator=generator)
    exact = in_pytorch(module, _double(batch), u.double())
    classes, positions = u.shape[-1], u.shape[:-1]
    batches = [
        (architecture.inputs(generator), torch.randint(classes, positions, generator=generator))
        for _ in range(steps)
    ]
    failed: list[str] = []

    def tried(work: Callable[[], ResultT]) -> ResultT | None:
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # the exporters print whole graphs
                return work()
        except Exception as error:  # exporters and runtimes raise many types
            failed.append(_short(error))
            return None

    return Row(
        compared(in_pytorch(module, batch, u), exact),
        tried(lambda: compared(in_single(module, export, exact, batch, u), exact)),
        tried(lambda: compared(in_double(module, export, exact, batch, u), exact)),
        tried(lambda: training_error(module, export, batches)),
        failed[0] if failed else "",
    )


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def main() -> None:
    """Print a line for each architecture and exporter."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = (*ARCHITECTURES, *PUBLISHED)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(a.name for a in every))
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    sys.path.insert(0, str(TESTS))
    warnings.simplefilter("ignore")
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    print(f"{'':<27}" + "".join(f"{head:>11}" for head in _HEADS))
    rows: list[Row] = []
    for architecture in every:
        if not options.names or architecture.name in options.names:
            for exporter in EXPORTERS:
                rows.append(row(architecture, exporter, options.steps))
                print(f"{architecture.name:<20} {exporter:<6} {rows[-1].render}", flush=True)
    gradients, follow = (
        sum(getattr(each_row, verdict) for each_row in rows)
        for verdict in ("has_gradients", "follows")
    )
    print(f"of {len(rows)} files {gradients} have PyTorch's gradients, {follow} follow its steps")


if __name__ == "__main__":
    main()
