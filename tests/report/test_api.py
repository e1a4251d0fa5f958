"""The static JSON: valid by its schema, and equal to the pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from epochcost.analysis.table.lines import values_of
from epochcost.report.api import FOLDER, api_files
from epochcost.report.pages.page import Report
from report_project import inputs_of, make_result, write_project


@pytest.fixture(scope="module", name="documents")
def documents_fixture(report: Report) -> dict[str, Any]:
    """Every document by its address below the version's folder."""
    return {uri.removeprefix(f"{FOLDER}/"): json.loads(text) for uri, text in api_files(report)}


def test_every_document_is_valid_by_the_published_schema(documents: dict[str, Any]) -> None:
    """Every document is valid by its definition in the schema, which refuses unknown keys."""
    schema = documents["schema.json"]
    Draft202012Validator.check_schema(schema)
    kinds = {"index.json": "Index", "models.json": "Models", "machines.json": "Machines"}
    for uri, document in documents.items():
        if uri != "schema.json":
            kind = {"$ref": f"#/$defs/{kinds.get(uri, 'ModelAnswers')}"}
            judge = Draft202012Validator({**schema, **kind})
            judge.validate(document)
            assert not judge.is_valid({**document, "unknown": 1})


def test_addresses_lead_somewhere(documents: dict[str, Any]) -> None:
    """The addresses in the index and in the list of models lead to documents."""
    index = documents["index.json"]
    assert {index["models"], index["machines"], index["data_schema"]} <= set(documents)
    listed = {entry["answers"] for entry in documents[index["models"]]["models"]}
    assert listed == {uri for uri in documents if uri.startswith("models/")}


def test_a_low_end_that_is_no_bound_is_null(tmp_path: Path) -> None:
    """If a time's interval reaches 0, the low ends of time and cost are null in JSON and tables."""
    few = make_result(samples=(0.00001, 0.00199))
    report = Report(inputs_of(write_project(tmp_path, [few])))
    documents = {uri: json.loads(text) for uri, text in api_files(report)}
    machines = documents[f"{FOLDER}/models/net.json"]["jobs"]["train"]["machines"]
    (choice,) = [machine for machine in machines if machine["evidence"].startswith("measured")]
    assert (choice["cost"]["low"], choice["seconds"]["low"]) == (None, None)
    assert min(choice["cost"]["high"], choice["seconds"]["high"]) > 0
    (line,) = [
        line for line in map(values_of, report.lines) if str(line["figure"]).startswith("measured")
    ]
    for name in ("step_low_s", "epoch_time_low_s", "full_time_low_s", "epoch_cost_low"):
        assert line[name] is None
    assert line["full_cost_low"] is None
    assert line["full_cost_high"] is not None


def test_answers_are_those_of_the_pages(documents: dict[str, Any], report: Report) -> None:
    """The cheapest machine and its cost equal those on the pages, for every job."""
    count = 0
    for workload in report.workloads:
        uri = f"models/{'' if workload.is_model else 'published/'}{workload.id}.json"
        for job, contest in report.contests[workload].items():
            answer = documents[uri]["jobs"][job]
            assert answer["cheapest"]["cost"]["mean"] == float(contest.cheapest.cost.mean)
            assert answer["cheapest"] in answer["machines"]
            assert len(answer["machines"]) == len(contest.machines)
            count += 1
    assert count > 2
