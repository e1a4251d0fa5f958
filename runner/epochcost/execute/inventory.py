"""The sizes of all models of a catalogue, counted side by side on the machine's cores.

What was counted before is taken from ``size_cache``.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from epochcost.errors import CapabilityError, EpochcostError
from epochcost.execute.size_cache import Question, count, keep, recalled
from epochcost.execute.sizing import declared_batch_sizes
from epochcost.plan.size import ModelSize
from epochcost.specs.catalogue import Catalogue

# Below so many bytes of graphs, starting processes takes longer than counting.
_FEW_BYTES = 2**15

# A model's size, or why it has none.
Found = ModelSize | EpochcostError


@dataclass(frozen=True)
class Counted:
    """How far the counting is: so many models of all, this one last."""

    done: int
    total: int
    model: str


def sizes(
    catalogue: Catalogue,
    models: Iterable[str],
    on_counted: Callable[[Counted], None] = lambda _: None,
) -> Mapping[str, Found]:
    """By id, the size of each of these models at its declared batch sizes, or why there is none.

    A model without a graph has no entry.
    """
    chosen = [catalogue.model(name) for name in sorted(set(models))]
    questions = [
        Question(model, catalogue.graph_path(model), declared_batch_sizes(model))
        for model in chosen
        if model.graph is not None
    ]
    found: dict[str, Found] = {}
    for question, size in _answers(questions):
        found[question.model.id] = size
        on_counted(Counted(len(found), len(questions), question.model.id))
    return {model.id: found[model.id] for model in chosen if model.id in found}


def _answers(questions: Sequence[Question]) -> Iterator[tuple[Question, Found]]:
    """Those that are kept at once, then the others as they are counted."""
    left: list[Question] = []
    for question in questions:
        size = recalled(question)
        if size is None:
            left.append(question)
        else:
            yield question, size
    for question, answer in _counted(left):
        if isinstance(answer, ModelSize):
            keep(question, answer)
        yield question, answer


def _counted(questions: Sequence[Question]) -> Iterator[tuple[Question, Found]]:
    # The largest graphs first, so that no core ends up alone with one.
    ordered = sorted(questions, key=_graph_bytes, reverse=True)
    if len(ordered) > 1 and sum(map(_graph_bytes, ordered)) > _FEW_BYTES:
        yield from _in_processes(ordered)
    else:
        yield from ((question, _size(question)) for question in ordered)


def _in_processes(questions: Sequence[Question]) -> Iterator[tuple[Question, Found]]:
    # Not by fork: libraries with threads of their own do not survive it.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(len(questions), os.cpu_count() or 1), context) as pool:
        try:
            asked = {pool.submit(_size, question): question for question in questions}
            for future in as_completed(asked):
                yield asked[future], _result(future)
        except BaseException:  # an interruption waits for what is being counted, and no more
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _result(future: Future[Found]) -> Found:
    try:
        return future.result()
    except BrokenProcessPool:
        return CapabilityError(
            "its count was cut off when a process ended before its time: free some memory, "
            "or name it alone with --model"
        )


def _graph_bytes(question: Question) -> int:
    return question.graph.stat().st_size if question.graph.is_file() else 0


def _size(question: Question) -> Found:
    try:
        return count(question)
    except EpochcostError as error:
        return error
