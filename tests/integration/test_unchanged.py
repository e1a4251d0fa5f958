"""Results that a redesign must not change: graphs, figures, printed answers and ids of results.

Compared with ``tests/golden/unchanged``: graphs by digest, figures and answers as readable text.
`make unchanged` rewrites them; give the reason in the commit.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from epochcost.errors import EpochcostError
from epochcost.execute.step import step_options
from epochcost.plan.binding import bind_model
from epochcost.specs.loader import load_catalogue
from epochcost.specs.model import Model
from epochcost.specs.study import Provider
from onnxstep import Precision, training_step, vjp_graph
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import parameters

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "unchanged"
_RENEWED = bool(os.environ.get("EPOCHCOST_RENEW_UNCHANGED"))
_PROVIDERS: tuple[Provider, ...] = ("cpu", "cuda")
_PRECISIONS: tuple[Precision, ...] = ("fp32", "fp16", "bf16")
_BATCH = 4
# Decoders are never differentiated.
_MODELS = {
    name: model
    for name, model in load_catalogue(ROOT).models.items()
    if model.graph is not None and model.decoder is None
}
# Commands of README and docs whose answers do not depend on the machine.
_COMMANDS = {
    "quote": "quote --price p2.xlarge-on-demand-2016-11 --duration 428s",
    "quote-committed": "quote --price a2-highgpu-1g-committed-use-3y-2024-06 --duration 1h",
    "quote-whole-hour": "quote --rate 0.90 --billing whole-hour --duration 428s --format json",
    "cheapest": "cheapest --model mnist-cnn --deadline 2h --budget 5USD",
    "break-even": "break-even --own assumed-server-8x-a100-80gb",
}


def _compare(name: str, got: str) -> None:
    """Compare with the golden of that name, or write it if the flag is set."""
    path = GOLDEN / name
    if _RENEWED:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(got, "utf-8")
    assert got == path.read_text("utf-8")


def _digest(built: Callable[[], bytes]) -> str:
    """SHA-256 of a graph, or the error that refused it."""
    try:
        return hashlib.sha256(built()).hexdigest()
    except EpochcostError as error:
        return str(error).replace(str(ROOT), "")


def _graphs(model: Model) -> dict[str, str]:
    graph = bind_model(load_model(ROOT / "models" / str(model.graph)), model, _BATCH)
    wrt = [parameter.name for parameter in parameters(graph)]
    digests = {"vjp": _digest(lambda: vjp_graph(graph, wrt).SerializeToString(deterministic=True))}
    training = model.training
    if training is None:
        return digests
    for provider in _PROVIDERS:
        for precision in _PRECISIONS:

            def step(provider: Provider = provider, precision: Precision = precision) -> bytes:
                options = step_options(model, training, provider, 0, precision)
                built = training_step(graph, options)
                return built.model.SerializeToString(deterministic=True)

            digests[f"step {provider} {precision}"] = _digest(step)
    return digests


@pytest.mark.parametrize("model", _MODELS)
def test_graphs(model: str) -> None:
    """The gradient graph and the step of every provider and precision are the same to the byte."""
    _compare(f"graphs/{model}.json", json.dumps(_graphs(_MODELS[model]), indent=1) + "\n")


@pytest.fixture(scope="module", name="committed_alone")
def committed_alone_fixture() -> None:
    """Exclude this machine's own measurements from the figures."""
    local_results = ROOT / "docs/data/results/local"
    if local_results.exists():
        pytest.fail(
            f"expected committed results alone, found {local_results}: move it away meanwhile"
        )


_GROUP = ("workload", "mode", "figure", "variant", "scenario", "stack", "precision")
_SHOWN = ("machine", "batch_size", "step_s", "price", "full_cost", "million_cost")


def _cost(row: dict[str, str]) -> float:
    return float(row["full_cost"] or row["million_cost"] or "inf")


def _rounded(cell: str) -> str:
    """Round a number to four digits, as in the site's figures."""
    try:
        return f"{float(cell):.4g}" if cell else ""
    except ValueError:
        return cell


@pytest.mark.usefixtures("committed_alone")
def test_figures(tmp_path: Path) -> None:
    """The cheapest published row of every model, mode, stack and precision is the same."""
    _run(["build", "--site-dir", str(tmp_path)])
    groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
    with (tmp_path / "data" / "figures.csv").open(newline="", encoding="utf-8") as table:
        for row in csv.DictReader(table):
            groups.setdefault(tuple(row[name] for name in _GROUP), []).append(row)
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([*_GROUP, "rows", *_SHOWN])
    for group, rows in sorted(groups.items()):
        cheapest = min(rows, key=_cost)
        lines.writerow([*group, len(rows), *(_rounded(cheapest[name]) for name in _SHOWN)])
    _compare("figures.csv", text.getvalue())


@pytest.mark.usefixtures("committed_alone")
@pytest.mark.parametrize("name", _COMMANDS)
def test_printed(name: str, tmp_path: Path) -> None:
    """A command of README and docs prints the same."""
    output = _run(_COMMANDS[name].format(folder=tmp_path).split())
    _compare(f"printed/{name}.txt", output.replace(str(tmp_path), "FOLDER"))


@pytest.mark.usefixtures("committed_alone")
def test_ids_of_results() -> None:
    """The committed results have the ids of their trials."""
    results = sorted((ROOT / "docs/data/results").glob("*/*.json"))
    _compare("results.txt", "".join(f"{path.parent.name}/{path.name}\n" for path in results))


def _run(arguments: list[str]) -> str:
    environment = {**os.environ, "COLUMNS": "200", "SOURCE_DATE_EPOCH": "1795392000"}
    process = subprocess.run(
        [sys.executable, "-m", "epochcost", *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return process.stdout + process.stderr
