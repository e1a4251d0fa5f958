"""Facts about ONNX files: read once for all machines, and the same as for each machine alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.execute import graph_facts
from epochcost.execute.graph_facts import GraphFacts
from epochcost.execute.planning import plan_elsewhere
from epochcost.plan.make import RunRequest
from epochcost.specs.loader import load_catalogue
from tiny_project import write_tiny_project


def test_plans_for_several_machines_read_each_graph_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two machines with shared facts have the plans that each has alone, from one reading."""
    project = write_tiny_project(tmp_path)
    study = project / "specs/studies/brief.toml"
    study.write_text(f'hardware = ["local", "giant"]\n{study.read_text()}')
    catalogue = load_catalogue(project)
    requests = [RunRequest(providers=("cpu",), hardware=name) for name in ("local", "giant")]
    alone = [plan_elsewhere(GraphFacts(catalogue), request) for request in requests]
    calls: list[tuple[str, object]] = []

    def note(name: str) -> None:
        original = getattr(graph_facts, name)

        def noted(*arguments: object) -> object:
            calls.append((name, arguments[1:] or arguments))
            return original(*arguments)

        monkeypatch.setattr(graph_facts, name, noted)

    for name in ("graph_sha256", "external_files", "cached_size"):
        note(name)
    facts = GraphFacts(catalogue)
    assert [plan_elsewhere(facts, request) for request in requests] == alone
    assert all(plan.trials for plan in alone)
    assert {name for name, _ in calls} == {"graph_sha256", "external_files", "cached_size"}
    assert all(calls.count(call) == 1 for call in calls)


def test_a_file_that_is_no_graph_is_a_fault(tmp_path: Path) -> None:
    """The fault names the file; the trials of its model are left out for this reason."""
    project = write_tiny_project(tmp_path)
    catalogue = load_catalogue(project)
    path = catalogue.graph_path(catalogue.models["tiny"])
    assert GraphFacts(catalogue).fault("tiny") is None
    path.write_bytes(b"\xff" * 9)
    fault = GraphFacts(catalogue).fault("tiny")
    assert fault is not None
    assert fault.startswith(f"{path}: expected an ONNX model")
    plan = plan_elsewhere(GraphFacts(catalogue), RunRequest(providers=("cpu",)))
    assert not plan.trials
    assert {each.reason for each in plan.left_out} == {fault}
