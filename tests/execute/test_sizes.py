"""The memory that a model needs is cached."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from epochcost.errors import ModelError
from epochcost.execute import sizes
from epochcost.execute.sizes import cached_size
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import Mode
from tiny_project import write_tiny_project

BATCHES: dict[Mode, tuple[int, ...]] = {"training": (2, 4), "inference": (1,)}


@pytest.fixture(name="folder", autouse=True)
def folder_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "epochcost" / "sizes"


@pytest.fixture(name="catalogue")
def catalogue_fixture(tmp_path: Path) -> Catalogue:
    """The tiny project."""
    return load_catalogue(write_tiny_project(tmp_path / "project"))


def test_a_size_is_counted_once(
    catalogue: Catalogue, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second call returns the cached size without counting."""
    tiny = catalogue.model("tiny")
    first = cached_size(catalogue, tiny, BATCHES)
    assert len(list(folder.iterdir())) == 1

    def refuse(*_: object) -> object:
        raise AssertionError("counted again")

    monkeypatch.setattr(sizes, "count_size", refuse)
    assert cached_size(catalogue, tiny, BATCHES) == first


def test_another_question_is_counted_anew(catalogue: Catalogue, folder: Path) -> None:
    """Another batch size, provider, spec or graph has no cached size."""
    tiny, graph = catalogue.model("tiny"), catalogue.models_folder / "tiny.onnx"
    assert tiny.training is not None
    frozen = tiny.training.model_copy(update={"freeze": ("w",)})
    cached_size(catalogue, tiny, BATCHES)
    cached_size(catalogue, tiny, {"training": (2,)})
    cached_size(catalogue, tiny, BATCHES, "cuda")
    cached_size(catalogue, tiny.model_copy(update={"training": frozen}), BATCHES)
    assert len(list(folder.iterdir())) == 4
    model = onnx.load(graph)
    model.doc_string = "another"
    onnx.save(model, graph)
    cached_size(catalogue, tiny, BATCHES)
    assert len(list(folder.iterdir())) == 5


def test_a_damaged_file_is_counted_again(catalogue: Catalogue, folder: Path) -> None:
    """A truncated cache file is ignored, counted again and rewritten."""
    tiny = catalogue.model("tiny")
    first = cached_size(catalogue, tiny, BATCHES)
    (kept,) = folder.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-7])
    assert cached_size(catalogue, tiny, BATCHES) == first
    assert kept.read_bytes() == whole


def test_a_graph_that_cannot_be_read_says_so(catalogue: Catalogue, folder: Path) -> None:
    """A missing graph is an error each time, and nothing is cached."""
    (catalogue.models_folder / "tiny.onnx").unlink()
    with pytest.raises(ModelError, match="expected the ONNX file that the model tiny names"):
        cached_size(catalogue, catalogue.model("tiny"), BATCHES)
    assert not folder.exists()
