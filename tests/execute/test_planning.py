"""Planning on this machine: what is asked for by name must exist and must be measured somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.errors import InputError
from epochcost.execute.planning import plan_run
from epochcost.plan.make import RunRequest
from epochcost.specs.loader import load_catalogue
from tiny_project import write_tiny_project


def test_a_model_that_no_study_measures_is_said(tmp_path: Path) -> None:
    """Asking for a model outside the chosen studies names them, and is not an empty plan."""
    project = write_tiny_project(tmp_path)
    tiny = (project / "specs/models/tiny.toml").read_text()
    (project / "specs/models/other.toml").write_text(tiny.replace('"tiny"', '"other"', 1))
    with pytest.raises(InputError, match="expected a model of the studies brief"):
        plan_run(load_catalogue(project), RunRequest(models=("other",), providers=("cpu",)))
