"""Counting many models at once."""

from __future__ import annotations

from pathlib import Path

from epochcost.errors import ModelError
from epochcost.execute.inventory import sizes
from epochcost.plan.size import ModelSize
from epochcost.specs.loader import load_catalogue
from tiny_project import write_tiny_project


def test_processes_count_what_one_counts(tmp_path: Path) -> None:
    """Five copies are counted side by side, in the order of their ids, faults included."""
    project = write_tiny_project(tmp_path)
    spec = (project / "specs/models/tiny.toml").read_text()
    for number in range(5):
        copy = spec.replace('"tiny"', f'"copy-{number}"', 1)
        graph = "broken.onnx" if number == 3 else "tiny.onnx"
        (project / f"specs/models/copy-{number}.toml").write_text(copy.replace("tiny.onnx", graph))
    (project / "models/broken.onnx").write_bytes(b"no graph at all")
    catalogue = load_catalogue(project)
    found = sizes(catalogue, catalogue.models)
    assert list(found) == [*(f"copy-{number}" for number in range(5)), "tiny"]
    assert isinstance(found["copy-3"], ModelError)
    few = sizes(catalogue, ["tiny"])["tiny"]
    copy = found["copy-0"]
    assert isinstance(copy, ModelSize)
    assert isinstance(few, ModelSize)
    assert copy.footprints == few.footprints
