"""Every gradient rule agrees with finite differences in the cases of tests/gradient_cases."""

from __future__ import annotations

import pytest

from gradient_cases import CASES
from gradient_check import Case, check
from onnxstep import registry, rules  # noqa: F401 - rules fill the registry


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_rule_agrees_with_finite_differences(case: Case) -> None:
    """The gradients of a case agree with finite differences along a random direction."""
    check(case, seed=7)


def test_every_rule_has_a_case() -> None:
    """Every operator with a gradient rule has a case."""
    claimed = {
        (domain, op_type)
        for (domain, op_type, _), answer in registry.registered().items()
        if isinstance(answer, registry.Gradient)
    }
    assert claimed == {(case.domain, case.op_type) for case in CASES}
