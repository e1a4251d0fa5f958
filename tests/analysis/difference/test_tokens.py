"""What tokens cost, on machines, behind an engine and of APIs, in two revisions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.test_served_tokens import asked_project
from analysis.test_tokens import phase_result, project
from epochcost.analysis.difference.words import figure_words
from report_project import store_results
from revisions import commit, compared, edit, git
from served_results import behind_an_engine

USUAL = "cost of tokens, tiny in fp32 on local (host f00d), cpu, local-11-01: "
Change = Callable[[Path], None]


def _committed(root: Path) -> Path:
    git(root, "init", "--quiet", "--initial-branch", "main")
    commit(root)
    return root


def _slower(root: Path) -> None:
    """The longest decoding took twice as long."""
    store_results(root, [phase_result("decode", 300, many, many / 5) for many in (1, 4)])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda root: edit(root, "prices/list", "amount = 1", "amount = 2"),
            f"{USUAL}was $10.65 a million; is $21.30 a million",
        ),
        (_slower, f"{USUAL}was $10.65 a million; is $15.28 a million"),
        (
            lambda root: edit(
                root, "apis/theirs", "output_per_million = 4", "output_per_million = 3"
            ),
            "price of an API, theirs: was $1.00 read, $4.00 written; is $1.00 read, $3.00 written",
        ),
    ],
    ids=["a price", "a phase", "an API"],
)
def test_what_changes_the_cost_of_tokens_is_told(
    tmp_path: Path, change: Change, words: str
) -> None:
    """By decoder, machine and plan, never idle; and by API."""
    root = tmp_path / "project"
    project(root)
    store_results(root, [phase_result("decode", 300, many, many / 10) for many in (1, 4)])
    _committed(root)
    change(root)
    found = [figure_words(one) for one in compared(root, tmp_path / "scratch").figures]
    assert found == [words]


def test_another_highest_rate_is_told(tmp_path: Path) -> None:
    """Of a decoder behind an engine, measured again."""
    root = tmp_path / "project"
    asked_project(root, {2.0: 1.0, 4.0: 2.0})
    _committed(root)
    again = behind_an_engine(phase_result("decode", 8, 4, 0.1), {2.0: 1.0, 6.0: 2.0})
    store_results(root, [again])
    (found,) = compared(root, tmp_path / "scratch").figures
    assert figure_words(found) == (
        "rate behind an engine, tiny in fp32 on local (host f00d), cpu: was 4 requests/s; "
        "is 6 requests/s"
    )
