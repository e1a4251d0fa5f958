"""What a step may overwrite, and that ONNX Runtime has read it by then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
import onnxruntime
import pytest

from epochcost.execute.step import build_step
from epochcost.plan.binding import bind_model
from epochcost.specs.loader import load_catalogue
from graph_text import model_of_text
from onnxstep import TrainingStep
from onnxstep.graphs.in_place import in_place_updates
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
HEAD = "step (float[4,4] w, float[4,4] g, float[4,4] x) => (float[4,4] after, float[4,4] y)"
CASES = {
    "the update alone": ("after = Sub(w, g)  y = Add(x, g)", True),
    "a copy that shrinks": ("k = Mul(w, x)  after = Sub(k, g)  y = Add(x, g)", True),
    "a reader before the update": (
        "p = MatMul(x, w)  q = Add(p, g)  after = Sub(w, q)  y = Relu(q)",
        True,
    ),
    "a reader beside the update": ("after = Sub(w, g)  y = MatMul(x, w)", False),
    "a copy that a product takes in": (
        "t = Transpose(w)  u = ReduceSum(t)  after = Sub(w, u)  y = MatMul(x, t)",
        False,
    ),
    "a factor that a product takes in": (
        "two = Constant<value_float = 2.0>()  t = Mul(w, two)  u = ReduceSum(t)"
        "  after = Sub(w, u)  y = MatMul(x, t)",
        False,
    ),
    "a bias that its activation takes in": (
        "a = Add(x, w)  r = Relu(a)  s = ReduceSum(r)  after = Sub(w, s)  y = MatMul(r, g)",
        True,
    ),
    "a bias whose activation is read late": (
        "a = Add(x, w)  r = Gelu(a)  after = Sub(w, g)  y = MatMul(r, g)",
        False,
    ),
    "another shape of it": (
        "n = Constant<value_ints = [4, 4]>()  v = Reshape(w, n)  v2 = Identity(v)"
        "  after = Sub(v2, g)  y = Add(x, g)",
        False,
    ),
    "a sum with a product": ("p = MatMul(x, g)  after = Add(w, p)  y = Add(x, g)", False),
    "no arithmetic": ("after = MatMul(w, g)  y = Add(x, g)", False),
    "it is an output": ("after = Sub(w, g)  y = Identity(w)", False),
}


@pytest.mark.parametrize("case", CASES)
def test_what_may_be_overwritten(case: str) -> None:
    """Only what nobody reads after its next value is written, whatever the runtime merges."""
    nodes, is_free = CASES[case]
    model = model_of_text(f"{HEAD} {{ {nodes} }}")
    assert in_place_updates(model, {"w": "after"}) == ({"w"} if is_free else set())


def test_readers_in_subgraphs_count() -> None:
    """A branch that reads the old value is a reader."""
    head = HEAD.replace("(", "(bool c, ", 1)
    text = (
        f"{head} {{ y = If(c) <then_branch = yes () => (float[4,4] p) {{ p = MatMul(x, w) }},"
        " else_branch = no () => (float[4,4] q) { q = Identity(x) }>  after = Sub(w, g) }"
    )
    assert not in_place_updates(model_of_text(text), {"w": "after"})


def step(name: str) -> TrainingStep:
    """The step of a model of the catalogue, at two examples."""
    catalogue = load_catalogue(ROOT)
    model = catalogue.model(name)
    graph = bind_model(load_model(catalogue.graph_path(model)), model, 2)
    assert model.training is not None
    return build_step(graph, model, model.training, "cpu", seed=1)


def late_readers(graph: onnx.GraphProto, before: str, after: str) -> Iterator[str]:
    """Operators that read the old value and do not lead to the one that writes the new one."""
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
    """In the graph that ONNX Runtime runs, fusions and layouts applied, no reader comes late."""
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
