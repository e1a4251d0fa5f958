"""Render docs/operators.md, which says whether each operator has a gradient.

The page also says how many of ONNX's own tests each operator's gradient passed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from onnx import defs

from onnxstep import registry, rules  # noqa: F401 - rules fill the registry
from oracle.judge import Answer, Verdict

PATH = Path(__file__).parents[2] / "docs" / "operators.md"
_FLOATS = {"tensor(float)", "tensor(double)", "tensor(float16)", "tensor(bfloat16)"}
# Models of older opsets are converted to this opset before differentiation.
_OLDEST_OPSET = 16
_LONGEST_NOTE = 160
_TITLES = {
    "": "ONNX",
    "com.microsoft": "ONNX Runtime (com.microsoft)",
}
# Hand-written parts of the page.
_INTRODUCTION = Path(__file__).with_name("introduction.md")
_RESULTS = Path(__file__).with_name("results.md")

Verdicts = Mapping[tuple[str, str], Sequence[Verdict]]


def page(verdicts: Iterable[Verdict], runs: Mapping[str, bool]) -> str:
    """Render the page docs/operators.md as Markdown.

    ``runs`` says for operators without a rule whether ONNX Runtime has a CPU kernel.
    """
    all_verdicts = list(verdicts)
    by_operator: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for verdict in all_verdicts:
        by_operator[verdict.case.node.domain, verdict.case.op_type].append(verdict)
    parts = [
        _INTRODUCTION.read_text(encoding="utf-8").rstrip(),
        _counts(all_verdicts),
        _RESULTS.read_text(encoding="utf-8").rstrip(),
        *(_table(domain, by_operator, runs) for domain in _TITLES),
    ]
    return "\n\n".join(parts) + "\n"


def _counts(verdicts: Sequence[Verdict]) -> str:
    tests = Counter(verdict.answer for verdict in verdicts)
    reference = sum("reference" in verdict.agreed for verdict in verdicts)
    runtime = sum(any("runtime" in who for who in verdict.agreed) for verdict in verdicts)
    rows = [f"| {answer.value} | {tests[answer]} |" for answer in Answer if tests[answer]]
    lines = [
        "## ONNX's backend test suite",
        "",
        f"`vjp_graph` was called for all {len(verdicts)} tests of single operators in the onnx "
        "package, with these answers:",
        "",
        "| answer | tests |",
        "|---|--:|",
        *rows,
        "",
        f"onnx's reference evaluator computed {reference} of the checked gradients in float64, "
        f"and ONNX Runtime computed {runtime} on the CPU.{_exceptions(verdicts)}",
    ]
    return "\n".join(lines)


def _exceptions(verdicts: Sequence[Verdict]) -> str:
    sentences = []
    for answer in (Answer.WRONG, Answer.UNDEFINED, Answer.UNJUDGED):
        names = [f"`{v.case.name}`" for v in verdicts if v.answer is answer]
        if names:
            sentences.append(f"Tests with the answer “{answer.value}”: {', '.join(names)}.")
    return "\n\n".join(["", *sentences])


def _table(domain: str, verdicts: Verdicts, runs: Mapping[str, bool]) -> str:
    head = [f"## {_TITLES[domain]}", "", "| operator | versions | answer | checked | note |"]
    rows = [_row(domain, op, verdicts, runs) for op in _operators(domain)]
    return "\n".join([*head, "|---|---|---|--:|---|", *rows])


def _operators(domain: str) -> list[str]:
    registered = {op for owner, op, _ in registry.registered() if owner == domain}
    standard = {s.name for s in defs.get_all_schemas() if s.domain == domain and not s.deprecated}
    return sorted(registered | standard)


def _row(domain: str, op: str, verdicts: Verdicts, runs: Mapping[str, bool]) -> str:
    cases = verdicts.get((domain, op), [])
    answer, note = _answer(domain, op, cases, runs)
    checked = sum(v.answer in (Answer.CHECKED, Answer.ZERO) and bool(v.agreed) for v in cases)
    versions = ", ".join(map(str, _operator_versions(domain, op)))
    return f"| {op} | {versions} | {answer} | {checked or ''} | {note} |"


def _operator_versions(domain: str, op: str) -> list[int]:
    """The versions of an operator in opset 16 and later opsets, in ascending order.

    The versions come from the registry of gradient rules, or from ONNX if the registry lacks the
    operator.
    """
    answered = {v for owner, name, v in registry.registered() if (owner, name) == (domain, op)}
    every = sorted(
        schema.since_version
        for schema in defs.get_all_schemas_with_history()
        if (schema.domain, schema.name) == (domain, op) and not schema.deprecated
    )
    oldest = max((v for v in every if v <= _OLDEST_OPSET), default=0)
    return [v for v in sorted(answered or every) if v >= oldest]


def _newest(domain: str, op: str) -> int:
    versions = _operator_versions(domain, op)
    return defs.get_schema(op, domain).since_version if defs.has(op, domain) else max(versions)


def _answer(
    domain: str, op: str, cases: Sequence[Verdict], runs: Mapping[str, bool]
) -> tuple[str, str]:
    answer = registry.answer(domain, op, _newest(domain, op))
    if isinstance(answer, registry.Refused):
        return "refused", answer.reason
    if isinstance(answer, registry.Zero):
        return "zero", ""
    refused = [v for v in cases if v.answer is Answer.REFUSED]
    note = f"{len(refused)} tests refused: {_refusal_note(refused[0])}" if refused else ""
    if isinstance(answer, registry.Gradient):
        return "gradient", note
    return _without_a_rule(domain, op, cases, runs, note)


def _without_a_rule(
    domain: str, op: str, cases: Sequence[Verdict], runs: Mapping[str, bool], note: str
) -> tuple[str, str]:
    schema = defs.get_schema(op, domain)
    if not any(_FLOATS & set(formal.types) for formal in schema.inputs):
        return "no float input", ""
    if not any(_FLOATS & set(formal.types) for formal in schema.outputs):
        return "zero", "no float output"
    if any(v.answer in (Answer.CHECKED, Answer.ZERO) for v in cases):
        return "by its definition", note
    if note:
        return "refused", note
    return "no rule", "" if runs.get(op, True) else "ONNX Runtime has no CPU kernel either"


def _refusal_note(verdict: Verdict) -> str:
    """The reason why the test was refused, shortened for a table cell and without node names."""
    text = verdict.reason.split("cannot be differentiated: ")[-1].split("; the node lies on")[0]
    short = text if len(text) <= _LONGEST_NOTE else text[:_LONGEST_NOTE].rsplit(" ", 1)[0] + " …"
    return short.replace("|", "\\|")
