"""The committed counts are those of the models' graphs."""

import os
from pathlib import Path

import pytest

from epochcost.analysis import arithmetic
from epochcost.analysis.arithmetic import COUNTS, COUNTS_FORM, Graph
from epochcost.graphs.profiling import arithmetic_of_file
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[2]


def test_counts_are_those_of_the_graphs() -> None:
    """Each graph is counted again, and nothing else is listed; a flag rewrites the file."""
    catalogue = load_catalogue(ROOT)
    graphs = sorted(
        {
            graph
            for model in catalogue.models.values()
            if model.graph is not None
            and (graph := Graph.of(catalogue.graph_path(model), model.dimensions))
        },
        key=lambda graph: (graph.path.name, graph.dimensions),
    )
    lines = map(_line, graphs)
    text = "[\n" + ",\n".join(line.decode()[1:-1] for line in lines) + "\n]\n"
    file = ROOT / "models" / COUNTS
    if os.environ.get("EPOCHCOST_RENEW_UNCHANGED"):
        file.write_text(text, encoding="utf-8")
    assert file.read_text("utf-8") == text, "renew the counts with `make unchanged`"


def _line(graph: Graph) -> bytes:
    """A graph's count as one JSON entry of the file."""
    counted = arithmetic_of_file(graph.path, dict(graph.dimensions))
    assert counted is not None
    return COUNTS_FORM.dump_json(((graph.digest, graph.dimensions, counted),))


def test_counts_beside_a_file_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph with a stored count is not counted; a damaged list is ignored."""
    catalogue = load_catalogue(ROOT)
    path = catalogue.graph_path(catalogue.models["resnet50"])
    monkeypatch.setattr("epochcost.graphs.profiling.arithmetic_of_file", None)
    monkeypatch.setattr(arithmetic, "_memory", {})
    graph = Graph.of(path, {})
    assert graph is not None
    counted = arithmetic.arithmetic_of_graph(graph)
    assert counted is not None
    assert counted.parameters == 25_557_032
    (tmp_path / COUNTS).write_text("[", encoding="utf-8")
    assert arithmetic._read_stored_counts(tmp_path) == {}
