"""Benchmarks of the rules' forms: what runs on a GPU, and forms that a shape does not support."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import onnx
import pytest

RULES = Path(__file__).parents[2] / "benchmarks/rules"


@pytest.fixture(name="rules")
def rules_fixture(monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, ModuleType]:
    """The modules ``convolution`` and ``interleaved``."""
    monkeypatch.syspath_prepend(RULES)
    return importlib.import_module("convolution"), importlib.import_module("interleaved")


def test_a_form_with_too_large_a_constant_is_left_out(rules: tuple[ModuleType, ModuleType]) -> None:
    """One form of one shape does not end the comparison of the others."""
    convolution, _ = rules
    case = convolution.GPU_CASES[3]
    forms = convolution.RULES["dw"]
    assert convolution.model_of(forms["patches"], case, "cuda") is None
    assert convolution.model_of(forms["exchange"], case, "cuda") is not None


def test_no_node_of_a_candidate_may_run_on_the_cpu(
    rules: tuple[ModuleType, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time with nodes on the CPU would be taken for a GPU's."""
    _, interleaved = rules

    def open_session(*_arguments: Any, strict: bool = False) -> None:
        raise RuntimeError(f"strict: {strict}")

    monkeypatch.setattr(interleaved, "open_session", open_session)
    with pytest.raises(RuntimeError, match="strict: True"):
        interleaved.median_seconds({"a": onnx.ModelProto()}, {}, provider="cuda")
