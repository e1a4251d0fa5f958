"""The file of prediction errors: its content, and when it is out of date."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from epochcost.analysis import prediction_trust
from epochcost.analysis.inputs import read_inputs
from epochcost.analysis.prediction_trust import (
    TRUST_FILE,
    Trust,
    as_text,
    digest,
    read_trust,
    stale_fault,
    trust_of,
)
from epochcost.report.pages.page import Report
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", name="project")
def project_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's machines, prices and devices with one table of observations."""
    folder = tmp_path_factory.mktemp("trusted")
    for kind in ("hardware", "prices", "grids", "devices"):
        shutil.copytree(ROOT / "specs" / kind, folder / "specs" / kind)
    (folder / "specs" / "observations").mkdir()
    for table in (ROOT / "specs" / "observations").glob("neusight*"):
        shutil.copy(table, folder / "specs" / "observations")
    return folder


@pytest.fixture(scope="module", name="trust")
def trust_fixture(project: Path) -> Trust:
    """The prediction errors of that project, stored in its docs folder."""
    trust = trust_of(load_catalogue(project), lambda _: None)
    assert trust is not None
    path = project / "docs" / TRUST_FILE
    path.parent.mkdir(parents=True)
    path.write_text(as_text(trust), encoding="utf-8")
    return trust


def test_the_figures_of_the_site_follow_from_what_there_is() -> None:
    """The committed file is up to date with observations, devices and the code of predictions."""
    assert (ROOT / "docs" / TRUST_FILE).is_file()
    assert stale_fault(ROOT, ROOT / "docs") is None


def test_the_digest_covers_the_counts_of_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digest changes if the number of passes of a training step changes."""
    before, changed = digest(ROOT), tmp_path / "profile.py"
    changed.write_text("PASSES_PER_STEP = 4")
    monkeypatch.setattr(prediction_trust, "_PROFILE", changed)
    assert digest(ROOT) != before


def test_the_digest_does_not_cover_docstrings_and_comments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rewritten docstring or comment leaves the digest unchanged; a changed line does not."""
    module = tmp_path / "profile.py"
    monkeypatch.setattr(prediction_trust, "_PROFILE", module)
    digests = []
    for docstring, factor in (("Twice.", 2), ("Twice\n\n    x.", 2), ("Twice.", 3)):
        comment = f"    # {docstring[:5]}\n\n"
        module.write_text(f'def f(x):\n    """{docstring}"""\n{comment}    return {factor} * x\n')
        digests.append(digest(ROOT))
    assert digests[0] == digests[1] != digests[2]


def test_a_table_that_is_no_text_has_a_digest(tmp_path: Path) -> None:
    """`check` reports such a table as a fault of its own, so the digest must not fail."""
    table = tmp_path / "specs/observations/rates.csv"
    table.parent.mkdir(parents=True)
    table.write_bytes(b"a\n")
    before = digest(tmp_path)
    table.write_bytes(b"a\n\xe9\n")
    assert digest(tmp_path) != before


def test_a_file_holds_what_was_computed(project: Path, trust: Trust) -> None:
    """Errors survive writing and reading, and the groups of rows add up to all rows."""
    assert read_trust(project / "docs") == trust
    for kind, groups in trust.groups.items():
        assert sum(group.errors.rows for group in groups) == (
            trust.all[kind].rows if kind in trust.all else 0
        )
    assert {group.name for group in trust.groups["accelerator"]} == {
        case.accelerator for case in trust.shown
    }
    assert all(case.low < case.predicted < case.high for case in trust.shown)
    assert {*trust.ratios} == {"two accelerators", "two generations", "one source"}
    for errors in trust.ratios.values():
        assert sum(stated.ratios for stated in errors.reliability) == errors.priced


def test_another_observation_makes_figures_stale_and_another_price_does_not(
    project: Path, trust: Trust
) -> None:
    """A changed table of observations makes the file out of date; a changed price does not."""
    docs = project / "docs"
    assert trust.digest
    (project / "specs/prices/g4dn.xlarge-on-demand-2026-07.toml").unlink(missing_ok=True)
    assert stale_fault(project, docs) is None
    table = project / "specs" / "observations" / "neusight.csv"
    text = table.read_text(encoding="utf-8")
    table.write_text(text.rpartition("\n")[0].rpartition("\n")[0] + "\n", encoding="utf-8")
    fault = stale_fault(project, docs)
    assert fault is not None
    assert "run `epochcost trust`" in str(fault)
    table.write_text(text, encoding="utf-8")
    assert stale_fault(project, docs) is None
    (table.parent / "more").mkdir()
    (table.parent / "more/rates.csv").write_text(text, encoding="utf-8")
    assert stale_fault(project, docs) is not None
    shutil.rmtree(table.parent / "more")


def test_figures_of_another_form_are_a_fault_and_no_figures(tmp_path: Path) -> None:
    """A damaged file is reported as a fault, and the site shows no errors of predictions."""
    path = tmp_path / TRUST_FILE
    path.parent.mkdir(parents=True)
    assert stale_fault(ROOT, tmp_path) is None
    path.write_text('{"digest": 1}', encoding="utf-8")
    fault = stale_fault(ROOT, tmp_path)
    assert fault is not None
    assert "expected the file as `epochcost trust` writes them" in str(fault)
    inputs = read_inputs(load_catalogue(ROOT), [], tmp_path)
    assert Report(inputs).trust is None
