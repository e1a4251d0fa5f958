"""ONNX Runtime reads the old value of a weight before a step overwrites it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
import onnxruntime
import pytest

from epochcost.execute.step import step_options
from epochcost.graphs.in_place import in_place_updates
from epochcost.plan.binding import bind_model
from epochcost.specs.loader import load_catalogue
from onnxstep import TrainingStep, training_step
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.nodes import reads

ROOT = Path(__file__).parents[2]
ELEMENTWISE = {"Add", "Div", "Mul", "Sub"}
VIEWS = {"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"}
# Of each a step in the layouts, fusions and optimizers that differ most.
MODELS = (
    "mnist-mlp",
    "mnist-cnn",
    "lstm-text-generation",
    "lstm-char-cnn-small",
    "imdb-fasttext",
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("nanogpt-characters", "cifar10-resnet44", "bert-base-128")
    ),
)


def step(name: str) -> TrainingStep:
    """The training step of the model ``name`` of the catalogue, for a batch of two."""
    catalogue = load_catalogue(ROOT)
    model = catalogue.model(name)
    graph = bind_model(load_model(catalogue.graph_path(model)), model, 2)
    assert model.training is not None
    return training_step(graph, step_options(model, model.training, "cpu", seed=1))


def late_readers(graph: onnx.GraphProto, before: str, after: str) -> Iterator[str]:
    """Operators that read ``before`` but do not precede the operator that writes ``after``."""
    makers = {name: node for node in graph.node for name in node.output if name}
    writer, pending, leading = makers[after], [makers[after]], set[str]()
    while pending:
        node = pending.pop()
        if node.output[0] not in leading:
            leading.add(node.output[0])
            pending += [makers[name] for name in reads(node) if name in makers]
    old = {before}
    for node in graph.node:
        if old.isdisjoint(reads(node)):
            continue
        if node.op_type in VIEWS:
            old.update(node.output)
        if node is writer:
            in_order = node.op_type in ELEMENTWISE and old & set(reads(node)) == {before}
        else:
            in_order = node.output[0] in leading
        if not in_order:
            yield node.op_type


@pytest.mark.parametrize("name", MODELS)
def test_the_runtime_reads_before_it_overwrites(name: str, tmp_path: Path) -> None:
    """In ONNX Runtime's optimized graph no operator reads a value after it is overwritten."""
    made = step(name)
    ends = {value.input: value.output for value in made.carried}
    free = in_place_updates(made.model, ends)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "run.onnx")
    options.log_severity_level = 3
    onnxruntime.InferenceSession(
        made.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    graph = onnx.load(tmp_path / "run.onnx").graph
    late = {before: list(late_readers(graph, before, ends[before])) for before in free}
    assert not {before: kinds for before, kinds in late.items() if kinds}
    assert any(name.endswith(("moment", "weight", "average", "momentum")) for name in free)
