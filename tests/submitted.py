"""Results as strangers submit them, and how the check judges them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

from epochcost.plan.digests import graph_sha256, work_sha256
from epochcost.results.environment import Conditions, fingerprint
from epochcost.results.records import Placement, Result
from epochcost.results.store import ResultStore
from epochcost.results.submissions import ResultsCheck, check_results
from epochcost.specs.loader import load_catalogue
from report_project import make_result
from revisions import STEPS

NOW = dt.datetime(2026, 11, 22, tzinfo=dt.UTC)


def sound(project: Path, **fields: Any) -> Result:
    """A result that a machine of this kind could have measured of this model."""
    catalogue = load_catalogue(project)
    made = make_result(samples=fields.pop("samples", STEPS), **fields)
    trial = made.trial.model_copy(
        update={
            "graph_sha256": graph_sha256(catalogue, "net"),
            "spec_sha256": work_sha256(catalogue.models["net"], made.trial.mode),
        }
    )
    placement = Placement(
        provider="CPUExecutionProvider", nodes_by_provider={"CPUExecutionProvider": {"Gemm": 3}}
    )
    watched = Conditions(seconds=0.7)
    measurement = made.measurement.model_copy(
        update={"steps_taken": 80, "placement": placement, "conditions": watched}
    )
    host = made.environment
    digits = fingerprint(host.cpu, host.physical_cores, host.logical_cpus, 2**33, ())
    return made.model_copy(
        update={
            "trial": trial,
            "trial_id": trial.id,
            "measurement": measurement,
            "environment": host.model_copy(update={"fingerprint": digits}),
        }
    )


def stored(project: Path, result: Result) -> Path:
    """Store a result as a run would; returns the file."""
    folder = project / "docs/data/results"
    (folder / result.hardware).mkdir(exist_ok=True)
    return ResultStore(folder).write(result)


def checked(project: Path, *paths: Path) -> ResultsCheck:
    """The check of all results, or of these paths."""
    return check_results(load_catalogue(project), Path("docs/data/results"), paths, NOW)


def the_fault(project: Path, path: Path) -> str:
    """The one-line message that refuses a file."""
    found = checked(project, path)
    assert not found.submissions
    (fault,) = found.faults
    assert fault.message.isprintable()
    assert "\n" not in str(fault)
    return fault.message
