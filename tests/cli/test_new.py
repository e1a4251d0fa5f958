"""`epochcost new`: specs from options, from this machine and from a graph."""

from __future__ import annotations

import os
import shutil
from datetime import date
from decimal import Decimal
from pathlib import Path

import onnx
import pytest
import tomli
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner, Result

from epochcost.cli.app import app
from epochcost.errors import EpochcostError
from epochcost.specs.catalogue import current_prices
from epochcost.specs.loader import check_paths, load_catalogue
from tiny_project import write_tiny_project

ROOT = Path(__file__).parents[2]
SOURCE = ("--source", "the provider's list")
NEW_BOX = ("hardware", "--id", "box", "--name", "n", "--provider", "p", *SOURCE)
TRADE = ("new", "price", "--hardware", "giant", "--amount", "3.10", *SOURCE)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project as the working folder."""
    write_tiny_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, catch_exceptions=True)


def _refusal(*arguments: str) -> EpochcostError:
    error = _run(*arguments).exception
    assert isinstance(error, EpochcostError), error
    return error


def test_a_price_by_flags(project: Path) -> None:
    """The new price is valid and has its machine's provider."""
    result = _run(*TRADE, "--as-of", "2026-11-20")
    assert result.exit_code == 0, result.output
    path = project / "specs/prices/giant-on-demand-2026-11.toml"
    assert "giant-on-demand-2026-11.toml is new" in result.output
    assert path.read_text("utf-8").startswith("#:schema ../../docs/schemas/price.json\n")
    price = load_catalogue(project).price("giant-on-demand-2026-11")
    assert (price.amount, price.provider) == (Decimal("3.10"), "nobody")
    assert not check_paths([path]).faults
    assert _run(*TRADE, "--as-of", "2026-2-3").exit_code == 0
    assert load_catalogue(project).price("giant-on-demand-2026-02").as_of == date(2026, 2, 3)


def test_a_price_needs_the_region_of_its_plan(project: Path) -> None:
    """A price without a region is refused if the plan's current price has a region."""
    _run(*TRADE, "--as-of", "2026-10-20", "--region", "us-east-1")
    refusal = str(_refusal(*TRADE, "--as-of", "2026-11-20"))
    assert "giant-on-demand-2026-10 is the current price of this plan, for --region us" in refusal
    assert _run(*TRADE, "--as-of", "2026-11-20", "--plan", "spot").exit_code == 0
    assert _run(*TRADE, "--as-of", "2026-11-20", "--region", "us-east-1").exit_code == 0
    assert len(load_catalogue(project).prices_of("giant")) == 3


def test_a_renewed_price_keeps_product_and_billing(project: Path) -> None:
    """The new price supersedes the old one, whose product name and billing it has by default."""
    terms = ("--sku", "box-1", "--billing", "{ increment_seconds = 7 }")
    _run(*TRADE, "--as-of", "2026-10-20", *terms)
    result = _run(*TRADE, "--as-of", "2026-11-20")
    assert "sku and billing: as in the current price giant-on-demand-2026-10" in result.output
    catalogue = load_catalogue(project)
    new = catalogue.price("giant-on-demand-2026-11")
    assert (new.sku, new.billing_rule.increment_seconds) == ("box-1", 7)
    assert current_prices(catalogue.prices_of("giant")) == (new,)
    path = project / "specs/prices/giant-on-demand-2026-11.toml"
    path.write_text(path.read_text("utf-8").replace('sku = "box-1"\n', ""))
    catalogue = load_catalogue(project)
    assert [price.sku for price in current_prices(catalogue.prices_of("giant"))] == [None]


def test_another_currency_is_not_compared(project: Path) -> None:
    """A price in euros is written, and a line says that currencies are not compared."""
    result = _run(*TRADE, "--as-of", "2026-11-20", "--currency", "EUR")
    assert result.exit_code == 0
    assert result.stderr.startswith("EUR: costs in different currencies are not compared: convert")
    assert [price.currency for price in load_catalogue(project).prices_of("giant")] == ["EUR"]


def test_nothing_is_overwritten(project: Path) -> None:
    """A second price with the name of an existing file is refused."""
    _run(*TRADE, "--as-of", "2026-11-20")
    path = project / "specs/prices/giant-on-demand-2026-11.toml"
    before = path.read_bytes()
    assert "expected the name of a new file" in str(_refusal(*TRADE, "--as-of", "2026-11-20"))
    assert path.read_bytes() == before


def test_a_second_price_of_a_month_has_the_day_in_its_id(project: Path) -> None:
    """The id has the day if the month's price is of another day or region."""
    for day, region in (("20", "a"), ("21", "a"), ("20", "b")):
        assert _run(*TRADE, "--as-of", f"2026-11-{day}", "--region", region).exit_code == 0
    ids = {price.id for price in load_catalogue(project).prices_of("giant")}
    assert {f"giant-on-demand-2026-11{day}" for day in ("", "-21", "-20")} <= ids


def test_an_interrupted_check_leaves_no_file(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of any kind after the new file is written removes the file."""

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("epochcost.specs.draft.check_paths", interrupted)
    assert _run(*TRADE).exit_code == 130
    assert not list(project.glob("specs/prices/*.toml"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("price", "--hardware", "giant", "--amount", "free", *SOURCE), "amount: should be a num"),
        (("price", "--hardware", "gaint", "--amount", "1", *SOURCE), 'did you mean "giant"?'),
        (("price", "--hardware", "giant", *SOURCE), "missing: --amount"),
        (("price",), "missing: --hardware, --source, --amount"),
        (("price", "--plan", "owned"), "missing: --hardware, --source"),
        (
            ("price", "--plan", "owned", "--hardware", "giant", "--owned", "years=4", *SOURCE),
            "--owned electricity_per_kwh=NUMBER; utilisation is the share of its life in which",
        ),
        (
            ("price", "--hardware", "giant", "--amount", "1", "--owned", "years=4", *SOURCE),
            "--owned years=4: expected --plan owned with it",
        ),
        (
            ("price", "--plan", "owned", "--hardware", "giant", "--owned", "purchse=1", *SOURCE),
            "--owned: expected a value of an owned machine, got 'purchse'; did you mean \"purchas",
        ),
        ((*TRADE[1:], "--as-of", "2026-02-30"), "--as-of: expected a day of the calendar, such as"),
        ((*TRADE[1:], "--as-of", "20260203"), "--as-of: expected a day of the calendar, such as"),
        (("hardware",), "missing: --id, --name, --provider, --source"),
        (("hardware", "--gpus", "4"), "--gpus 4: expected --gpu NAME with it"),
        (
            ("price", "--hardware", "giant", "--amount", "1", "--plan", "on-demnd", *SOURCE),
            'did you mean "on-demand"?',
        ),
        (
            ("price", "--hardware", "giant", "--amount", "1", "--billing", "hourly", *SOURCE),
            'did you mean "whole-hour"?',
        ),
        (
            ("hardware", "--id", "../x", "--name", "n", "--provider", "p", *SOURCE),
            "should be an id",
        ),
        (
            (*NEW_BOX, "--memory-gib", "50%"),
            'memory_gib: should be a number, got "50%"',
        ),
    ],
)
def test_what_is_wrong_is_refused(project: Path, arguments: tuple[str, ...], message: str) -> None:
    """A wrong value or reference or a missing option is named, and no file is written."""
    before = sorted(path for path in project.rglob("*") if path.is_file())
    assert message in str(_refusal("new", *arguments))
    assert sorted(path for path in project.rglob("*") if path.is_file()) == before


def test_an_owned_machine(project: Path) -> None:
    """Each cost of an owned machine is given as ``--owned KEY=VALUE``."""
    keys = ("purchase=3000", "years=4", "utilisation=30%", "power_watts=350")
    options = [word for key in (*keys, "electricity_per_kwh=0.15") for word in ("--owned", key)]
    result = _run("new", "price", "--hardware", "giant", "--plan", "owned", *options, *SOURCE)
    assert result.exit_code == 0, result.exception
    prices = load_catalogue(project).prices_of("giant")
    assert [price.owned.years for price in prices if price.owned] == [4]


def test_the_machine_at_hand(project: Path) -> None:
    """``--detect`` describes this machine, and other options add to the description."""
    result = _run("new", "hardware", "--detect", "--id", "mine", "--provider", "Us")
    assert result.exit_code == 0, result.exception
    machine = load_catalogue(project).machine("mine")
    assert machine.provider == "Us"
    assert machine.vcpus == len(os.sched_getaffinity(0))
    assert machine.memory_gib is not None


def test_a_machine_with_gpus(project: Path) -> None:
    """A known GPU gets the figures of specs/devices/; an unknown one gives a line."""
    folder = project / "specs/devices"
    folder.mkdir(exist_ok=True)
    shutil.copy(ROOT / "specs/devices/geforce-rtx-4090.toml", folder)
    for name, message in (("rtx 4090", ""), ("V100", "V100: not in specs/devices\n")):
        identity = ("--id", "dgx", "--name", "DGX", "--provider", "NVIDIA")
        result = _run("new", "hardware", *identity, "--gpu", name, "--gpus", "8", *SOURCE)
        assert (result.exit_code, result.stderr) == (0, message)
        (gpu,) = load_catalogue(project).machine("dgx").accelerators
        expected = ("GeForce RTX 4090", Decimal("165.2")) if not message else ("V100", None)
        assert (gpu.name, gpu.peak_fp16_tflops, gpu.count) == (*expected, 8)
        assert gpu.compute_capability == (None if message else "8.9")
        (project / "specs/hardware/dgx.toml").unlink()


@pytest.fixture
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ONNX file with token inputs, a symbolic length and stored weights."""
    graph_proto = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "tokens"], ["vectors"]),
            helper.make_node("ReduceMean", ["vectors", "axes"], ["mean"], keepdims=0),
            helper.make_node("MatMul", ["mean", "weight"], ["logits"]),
        ],
        "g",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", "length"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3])],
        [
            helper.make_tensor("table", TensorProto.FLOAT, [5, 4], [0.1] * 20),
            helper.make_tensor("axes", TensorProto.INT64, [1], [1]),
            helper.make_tensor("weight", TensorProto.FLOAT, [4, 3], [0.1] * 12),
        ],
    )
    path = tmp_path_factory.mktemp("graph") / "word_bag.onnx"
    onnx.save(helper.make_model(graph_proto, opset_imports=[helper.make_opsetid("", 18)]), path)
    return path


def test_a_model_from_its_graph(project: Path, graph: Path) -> None:
    """Inputs, length and classes come from the graph, and its file is copied into models/."""
    options = ("--task", "tests", "--example", "a few words", *SOURCE)
    sizes = ("--dim", "length=7", "--vocabulary", "tokens=5", "--loss", "softmax_cross_entropy")
    result = _run("new", "model", "--graph", str(graph), *options, *sizes)
    assert result.exit_code == 0, result.exception
    model = load_catalogue(project).model("word-bag")
    assert model.inputs[0].vocabulary == 5
    assert model.dimensions == {"length": 7}
    assert model.training is not None
    assert model.training.target is not None
    assert model.training.target.classes == 3
    assert (project / "models/word_bag.onnx").read_bytes() == graph.read_bytes()
    text = (project / "specs/models/word-bag.toml").read_text("utf-8")
    keys = [*tomli.loads(text.partition("\n[")[0])]
    assert keys == ["id", "name", "task", "example", "graph", "source"]


def _keep_weights_in(name: str, graph: Path) -> None:
    """Save the graph with its tensors in the file ``name``, as PyTorch does."""
    model = onnx.load(graph)
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
    onnx.save(model, graph, save_as_external_data=True, location=name, size_threshold=0)


def test_a_models_data_goes_with_it(project: Path, graph: Path) -> None:
    """External weights are copied too; `check` and `plan` report a missing file."""
    data_file = graph.with_name("word_bag.onnx.data")
    _keep_weights_in(data_file.name, graph)
    options = ("--task", "tests", "--example", "a few words", "--source", "x")
    sizes = ("--dim", "length=7", "--vocabulary", "tokens=5")
    refused = str(_refusal("new", "model", "--graph", str(graph), *options, *sizes))
    assert "source: should have at least 3 characters" in refused
    assert not list((project / "models").glob("word_bag*"))
    result = _run("new", "model", "--graph", str(graph), *options, *sizes, *SOURCE)
    assert result.exit_code == 0, result.exception
    copy = project / "models" / data_file.name
    assert copy.read_bytes() == data_file.read_bytes()
    assert _run("check").exit_code == 0
    copy.unlink()
    message = "there is no file 'word_bag.onnx.data': copy the file there"
    (line,) = _run("check").stdout.splitlines()
    assert line.startswith("specs/models/word-bag.toml:6:1: graph: models/word_bag.onnx: tensor")
    assert line.endswith(message)
    write_study = (project / "specs/studies/brief.toml").read_text("utf-8")
    (project / "specs/studies/brief.toml").write_text(
        write_study.replace('["tiny"]', '["word-bag"]')
    )
    planned = _run("plan")
    assert message in " ".join(planned.stdout.split())
    assert "0 trials" in planned.stdout


def test_data_of_another_model_is_not_overwritten(project: Path, graph: Path) -> None:
    """External weights with the name of an existing file are refused, and nothing is copied."""
    data_file = project / "models/weights.bin"
    data_file.write_bytes(b"others")
    _keep_weights_in(data_file.name, graph)
    options = ("--task", "tests", "--example", "a few words", *SOURCE)
    sizes = ("--dim", "length=7", "--vocabulary", "tokens=5")
    refused = str(_refusal("new", "model", "--graph", str(graph), *options, *sizes))
    assert "expected an unused name" in refused
    assert (data_file.read_bytes(), (project / "models/word_bag.onnx").exists()) == (
        b"others",
        False,
    )


def _save_product(path: Path, shape: list[str | int | None], **changed: object) -> Path:
    """Save the product of an input ``x`` and an 8 x 4 matrix; ``changed`` has other arguments."""
    arguments = {
        "nodes": [helper.make_node("MatMul", ["x", "weight"], ["y"])],
        "name": "g",
        "inputs": [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        "outputs": [helper.make_tensor_value_info("y", TensorProto.FLOAT, [shape[0], 4])],
        "initializer": [helper.make_tensor("weight", TensorProto.FLOAT, [8, 4], [0.1] * 32)],
    }
    opset = helper.make_opsetid("", 18)
    graph_proto = helper.make_graph(**{**arguments, **changed})
    onnx.save(helper.make_model(graph_proto, opset_imports=[opset], ir_version=10), path)
    return path


def _new_model(path: Path, *options: str) -> tuple[str, ...]:
    described = ("--task", "tests", "--example", "numbers", *SOURCE)
    return ("new", "model", "--graph", str(path), *described, *options)


@pytest.mark.parametrize("loss", [(), ("--loss", "mse")])
def test_a_graph_without_outputs_is_refused(project: Path, loss: tuple[str, ...]) -> None:
    """A graph without outputs computes nothing, so `new model` and `check` refuse it."""
    path = _save_product(project / "silent.onnx", ["batch", 8], outputs=[])
    assert str(_refusal(*_new_model(path, *loss))).endswith("a graph with an output, got none")
    assert not (project / "models/silent.onnx").exists()
    shutil.copy(path, project / "models/tiny.onnx")
    assert "graph: should have an output, has none" in _run("check").stdout


def test_an_input_of_texts_is_refused(project: Path) -> None:
    """`new model` and `check` refuse an input of texts, with its name and type."""
    texts = [
        helper.make_tensor_value_info(name, TensorProto.STRING, ["batch"])
        for name in ("words", "letters")
    ]
    nodes = [helper.make_node("StringNormalizer", ["words"], ["letters"])]
    path = project / "texts.onnx"
    _save_product(path, [1], nodes=nodes, inputs=texts[:1], outputs=texts[1:], initializer=[])
    message = "inputs: should be numbers or truth values, got the input 'words' of type STRING"
    assert message in str(_refusal(*_new_model(path)))
    shutil.copy(path, project / "models/tiny.onnx")
    assert message in _run("check").stdout


def test_a_fixed_batch_is_the_only_batch_size(project: Path) -> None:
    """`new model` writes the batch size to which the graph is fixed; `check` refuses others."""
    path = _save_product(project / "seven.onnx", [7, 8])
    result = _run(*_new_model(path, "--loss", "mse"))
    assert result.exit_code == 0, result.exception
    model = load_catalogue(project).model("seven")
    assert model.training is not None
    assert model.inference is not None
    assert (model.training.batch_sizes, model.inference.batch_sizes) == ((7,), (7,))
    assert _run("check").exit_code == 0
    spec = project / "specs/models/seven.toml"
    spec.write_text(spec.read_text("utf-8").replace("[7]", "[7, 8]", 1), "utf-8")
    message = "training.batch_sizes: should be 7, as the graph's input 'x' has it, got 8"
    assert message in _run("check").stdout


def test_an_unnamed_batch_dimension_needs_no_size(project: Path) -> None:
    """The first dimension of an input is the batch, even without a name."""
    result = _run(*_new_model(_save_product(project / "unnamed.onnx", [None, 8])))
    assert result.exit_code == 0, result.exception
    assert load_catalogue(project).model("unnamed").dimensions == {}


def test_sizes_that_contradict_the_graph_are_refused(project: Path) -> None:
    """`new model` binds the sizes, and writes nothing if shapes contradict each other."""
    path = _save_product(project / "wide.onnx", ["batch", "features"])
    refused = str(_refusal(*_new_model(path, "--dim", "features=9")))
    assert "with features = 9, batch = 1: node 'y' (MatMul) of x[1, 9], weight[8, 4]" in refused
    assert not (project / "models/wide.onnx").exists()
    assert _run(*_new_model(path, "--dim", "features=8")).exit_code == 0


def test_an_option_for_no_input_is_refused(project: Path, graph: Path) -> None:
    """A vocabulary of a missing input or of an input of numbers is refused by name."""
    path = _save_product(project / "numbers.onnx", ["batch", 8])
    refused = str(_refusal(*_new_model(path, "--vocabulary", "x=10")))
    assert refused == "--vocabulary: expected none for this graph, got x"
    sizes = ("--dim", "length=7", "--vocabulary", "tokens=5", "--vocabulary", "zz=10")
    refused = str(_refusal(*_new_model(graph, *sizes)))
    assert refused == "--vocabulary: expected one of tokens, got zz"
