"""Classes of a file's result, and the criterion for a helpful refusal."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass

import onnx

from onnxstep.graphs.nodes import nested_nodes
from onnxstep.graphs.tensors import declared_values, graphs, stored_tensors


class Answer(enum.StrEnum):
    """The class of a stage or of a file, from best to worst. A file has its worst stage's class."""

    RIGHT = "right"
    NOTHING = "nothing to differentiate"
    NO_DATA = "external data missing"
    AS_RUNTIME = "refused as ONNX Runtime refuses"
    UNJUDGED = "not judged"
    REASONED = "refused with reason"
    MISLEADING = "refused misleadingly"
    FAILS = "our graph fails in ONNX Runtime"
    MEMORY = "crash or out of memory"
    HANG = "hang"
    TRACEBACK = "traceback"
    WRONG = "wrong"


REFUSALS = (Answer.REASONED, Answer.MISLEADING)


@dataclass(frozen=True)
class Finding:
    """The answer of one stage, its message, and the parts that a refusal lacks."""

    stage: str
    answer: Answer
    message: str = ""
    lacks: tuple[str, ...] = ()


def worst(findings: list[Finding]) -> Answer:
    """The worst answer of a file's findings, or "not judged" if the file has no findings."""
    order = list(Answer)
    answers = [finding.answer for finding in findings]
    return max(answers, key=order.index, default=Answer.UNJUDGED)


# An order at the beginning of a clause, such as "; export it at opset 13".
_REMEDY = re.compile(
    r"(?:^|[;:,.(]|\bor|\band|\bto) (?:please |then )?"
    r"(?:bind|choose|convert|copy|cut|declare|drop|export|feed|fold|freeze|give|install|keep|"
    r"leave|list|make|name|pass|put|remove|rename|replace|run|set|shorten|simplify|sort|split|"
    r"take|train|turn|update|use|write)\b(?!:)",
    re.IGNORECASE,
)
_PLACE = re.compile(r"(?:node|value|input|output|tensor|initializer|parameter|dimension)s? '[^']+'")


def lacks(message: str, model: onnx.ModelProto | None) -> Iterator[str]:
    """Parts that a refusal lacks: the name of a node or value, an operator, a remedy.

    A refusal of an input, output, stored tensor or unreadable file needs no operator; a refusal of
    an unreadable file needs no node.
    """
    quoted = set(re.findall(r"'([^']+)'", message)) | set(
        re.findall(r"name: ([^\s(),:]+)", message)
    )
    if model is not None:
        ends = {value.name for value in (*model.graph.input, *model.graph.output)}
        ends |= {tensor.name for tensor in stored_tensors(model)} | {"dimensions"}
        if not _PLACE.search(message) and quoted.isdisjoint(_names(model)):
            yield "node or value"
        operators = {node.op_type for node in _nodes(model)}
        message_words = set(re.findall(r"\w+", message))
        at_the_end = not quoted.isdisjoint(ends) or message.startswith("dimension")
        if not at_the_end and operators.isdisjoint(message_words):
            yield "operator"
    if not _REMEDY.search(message):
        yield "remedy"


def _nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    yield from nested_nodes(model.graph.node)
    for function in model.functions:
        yield from nested_nodes(function.node)


def _names(model: onnx.ModelProto) -> set[str]:
    names = {tensor.name for tensor in model.graph.initializer}
    names |= {value.name for graph in graphs(model) for value in declared_values(graph)}
    for node in _nodes(model):
        names |= {node.name, *node.input, *node.output}
    return names - {""}
