"""The history of figures: one host at a time, steps only where they are significant."""

from __future__ import annotations

import pytest

from epochcost.analysis.history import Series, histories
from epochcost.report.pages import changes
from epochcost.report.pages.page import Report
from report_project import inputs_of, make_result, write_project

STEADY = (0.0100, 0.0101) * 30


@pytest.fixture(scope="module", name="series")
def series_fixture(tmp_path_factory: pytest.TempPathFactory) -> Series:
    """Three versions on one host: the second by chance another, the third surely slower."""
    results = [
        make_result(day=day, producer=producer, samples=samples, rounds=3)
        for day, producer, samples in (
            (1, "0.1.0", STEADY),
            (2, "0.2.0", (0.0101, 0.0102) * 30),
            (3, "0.3.0", (0.0150, 0.0151) * 30),
        )
    ]
    results.append(make_result(fingerprint="beef" * 4))
    found = histories(inputs_of(write_project(tmp_path_factory.mktemp("history"), results)))
    assert [len(one.runs) for one in found] == [1, 3]
    return found[1]


def test_a_step_is_marked_only_where_it_is_significant(series: Series) -> None:
    """One percent is none, fifty are one; both say what was other about the trial."""
    first, second, third = series.points
    assert first.change is None
    assert second.change is not None
    assert not second.change.significant
    assert 'producer "0.1.0" → "0.2.0"' in second.method
    assert series.steps == (third,)
    assert third.relative.mean == pytest.approx(1.5, rel=0.01)


def test_the_page_lists_what_was_measured_again(series: Series, report: Report) -> None:
    """Work that was measured once is counted; nothing else is on the page of such a project."""
    assert series.farthest == pytest.approx(0.5, rel=0.01)
    _, page, *_ = changes.pages(report)
    hosts = page.context["hosts"]
    assert sum(host.once for host in hosts) == len(histories(report.inputs)) > 0
    assert [host.again for host in hosts] == [[]] * len(hosts)
