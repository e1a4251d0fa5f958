"""Sizes that are kept: found again under what they follow from, and never in the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from epochcost.errors import CapabilityError, ModelError
from epochcost.execute import size_cache
from epochcost.execute.size_cache import Question, keep, recalled, size_once
from epochcost.plan.size import ModelSize
from epochcost.specs.loader import load_catalogue
from tiny_project import write_tiny_project


@pytest.fixture(name="folder", autouse=True)
def folder_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "epochcost" / "sizes"


@pytest.fixture(name="question")
def question_fixture(tmp_path: Path) -> Question:
    """The tiny project's model at two batch sizes."""
    catalogue = load_catalogue(write_tiny_project(tmp_path / "project"))
    model = catalogue.model("tiny")
    return Question(model, catalogue.graph_path(model), {"training": (2, 4), "inference": (1,)})


def test_a_size_is_counted_once(
    question: Question, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second answer is equal to the first, and nothing is counted for it."""
    first = size_once(question)
    assert len(list(folder.iterdir())) == 1

    def refuse(*_: object) -> ModelSize:
        raise AssertionError("counted again")

    monkeypatch.setattr(size_cache, "count", refuse)
    assert size_once(question) == first


def test_another_question_is_counted_anew(question: Question) -> None:
    """Other batch sizes, another provider, another spec or graph: nothing is mistaken for them."""
    size_once(question)
    training = question.model.training
    assert training is not None
    frozen = training.model_copy(update={"freeze": ("w",)})
    others = [
        replace(question, wanted={"training": (2,)}),
        replace(question, provider="cuda"),
        replace(question, model=question.model.model_copy(update={"training": frozen})),
    ]
    assert [recalled(other) for other in others] == [None] * len(others)
    question.graph.write_bytes(question.graph.read_bytes() + b"\x00")
    assert recalled(question) is None


def test_a_damaged_file_is_counted_again(question: Question, folder: Path) -> None:
    """And put right."""
    first = size_once(question)
    (kept,) = folder.iterdir()
    kept.write_bytes(kept.read_bytes()[:-7])
    assert recalled(question) is None
    assert size_once(question) == first == recalled(question)


def test_a_folder_that_cannot_be_is_no_fault(
    question: Question, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file stands where the folder should: sizes are counted as if there were no cache."""
    folder.parent.parent.mkdir()
    folder.parent.write_text("in the way")
    assert size_once(question) == size_once(question)
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(Path, "home", _homeless)
    assert size_once(question).parameters == 51


def _homeless() -> Path:
    raise RuntimeError("no home")


def test_a_graph_that_cannot_be_read_says_so(question: Question, folder: Path) -> None:
    """Its fault is told each time, and not kept."""
    question.graph.unlink()
    with pytest.raises(ModelError, match="there is no such file"):
        size_once(question)
    assert not folder.exists()


def test_memory_that_does_not_suffice_is_said(
    question: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of this machine, and in words."""

    def exhaust(*_: object) -> ModelSize:
        raise MemoryError

    monkeypatch.setattr(size_cache, "size_of", exhaust)
    with pytest.raises(CapabilityError, match="takes more than this machine has"):
        size_once(question)


def test_the_oldest_are_forgotten(
    question: Question, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder does not grow without end."""
    monkeypatch.setattr(size_cache, "_MOST_KEPT", 4)
    size = size_once(question)
    for batch in range(3, 20):
        keep(replace(question, wanted={"training": (batch,)}), size)
    assert len(list(folder.iterdir())) <= 5
    assert recalled(replace(question, wanted={"training": (19,)})) == size
