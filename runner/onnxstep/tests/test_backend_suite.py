"""The gradient rules agree with ONNX's backend test suite, and docs/operators.md has the results.

`make operators` writes docs/operators.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from oracle.judge import Answer, Verdict, judge
from oracle.page import PATH, page
from oracle.suite import suite
from oracle.support import runs_on_the_cpu

pytestmark = pytest.mark.slow  # These tests take half a minute.
# Tests that no evaluator can judge, because their outputs are NaN.
UNJUDGED = ("test_mod_float_edge_cases",)
# Tests whose models compute a softmax of masked elements only.
UNDEFINED = ("test_attention_",)


@pytest.fixture(scope="module")
def verdicts() -> list[Verdict]:
    """The verdicts for all node tests of the suite; computing them takes half a minute."""
    return [judge(case) for case in suite()]


def named(verdicts: Sequence[Verdict], answer: Answer) -> dict[str, str]:
    """The reasons of all verdicts that equal ``answer``, by the name of the judged test."""
    return {v.case.name: v.reason for v in verdicts if v.answer is answer}


def test_no_gradient_of_the_suite_is_wrong(verdicts: list[Verdict]) -> None:
    """In every differentiated test of the suite, the gradient agrees with finite differences."""
    assert named(verdicts, Answer.WRONG) == {}


def test_a_thousand_tests_are_compared(verdicts: list[Verdict]) -> None:
    """Over 1000 tests are checked, and only a few known tests cannot be judged."""
    assert len(named(verdicts, Answer.CHECKED)) > 1000
    unjudged = named(verdicts, Answer.UNJUDGED)
    assert {name for name in unjudged if not name.startswith(UNJUDGED)} == set()
    undefined = named(verdicts, Answer.UNDEFINED)
    assert {name for name in undefined if not name.startswith(UNDEFINED)} == set()


def test_what_the_runtime_runs_has_an_answer(verdicts: list[Verdict]) -> None:
    """No standard operator that ONNX Runtime loads is refused for lack of a gradient rule.

    It may be refused for another reason.
    """
    runs = runs_on_the_cpu(v for v in verdicts if not v.case.node.domain)
    assert [op_type for op_type, loads in runs.items() if loads] == []


def test_the_page_is_up_to_date(verdicts: list[Verdict]) -> None:
    """The committed docs/operators.md equals the page rendered from the verdicts."""
    assert PATH.read_text(encoding="utf-8") == page(verdicts, runs_on_the_cpu(verdicts))
