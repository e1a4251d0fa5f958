"""The node tests of ONNX's backend suite, as models with data.

Collecting the tests takes some seconds, so a process does it only once.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase

Array = NDArray[Any]
# The suite repeats each test of a function operator with the nodes of its body.
_EXPANDED = re.compile(r"_expanded(_ver\d+)?$")


@dataclass(frozen=True)
class SuiteCase:
    """A test of the suite: a model, its inputs and the expected outputs by name.

    ``node`` has the tested operator. ``model`` may instead have the nodes of the operator's
    function body. Inputs and outputs are arrays, sequences or optionals.
    """

    name: str
    node: onnx.NodeProto
    model: onnx.ModelProto
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]

    @property
    def op_type(self) -> str:
        """The name of the tested operator."""
        return self.node.op_type


@functools.cache
def suite() -> tuple[SuiteCase, ...]:
    """All node tests, in the order of the suite."""
    with warnings.catch_warnings():
        # Some tests deliberately cast to narrow types, for which numpy warns.
        warnings.simplefilter("ignore", RuntimeWarning)
        tests = collect_testcases(None)
    tested = {test.name: _only(test).graph.node[0] for test in tests}
    return tuple(_case(test, tested[_EXPANDED.sub("", test.name)]) for test in tests)


def _only(test: TestCase) -> onnx.ModelProto:
    assert test.model is not None
    return test.model


def _case(test: TestCase, node: onnx.NodeProto) -> SuiteCase:
    [(inputs, outputs)] = test.data_sets or []
    model = _only(test)
    graph = model.graph
    return SuiteCase(
        test.name,
        node,
        model,
        dict(zip((value.name for value in graph.input), inputs, strict=True)),
        dict(zip((value.name for value in graph.output), outputs, strict=True)),
    )
