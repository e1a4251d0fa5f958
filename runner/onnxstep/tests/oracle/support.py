"""Find operators that ONNX Runtime can run on the CPU, but that have no gradient rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from graph_text import session
from oracle.evaluators import RUNTIME_OPSET, silent
from oracle.judge import Answer, Verdict
from oracle.posed import opset_of, stamped
from oracle.suite import SuiteCase


def runs_on_the_cpu(verdicts: Iterable[Verdict]) -> Mapping[str, bool]:
    """For each operator without a gradient rule: whether ONNX Runtime loads any of its tests."""
    loads: dict[str, bool] = {}
    for verdict in verdicts:
        if verdict.answer is Answer.NO_RULE:
            op_type = verdict.case.op_type
            loads[op_type] = loads.get(op_type, False) or _loads(verdict.case)
    return loads


def _loads(case: SuiteCase) -> bool:
    model = stamped(case.model, min(opset_of(case.model), RUNTIME_OPSET))
    model.ir_version = 10
    try:
        session(model, silent())
    except Exception:  # ONNX Runtime's exceptions share no base class
        return False
    return True
