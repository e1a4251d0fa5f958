"""Digests of ONNX files: equal for equal bytes, and a clear error where a file is missing."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.errors import ModelError
from epochcost.plan.digests import graph_digests, work_sha256
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.model import Input, Model


def catalogue(root: Path) -> Catalogue:
    """A catalogue whose one model names ``net.onnx``."""
    net = Model(
        id="net",
        name="Net",
        task="digits",
        example="image",
        graph="net.onnx",
        inputs=(Input(name="pixels"),),
        source="a paper",
    )
    return Catalogue(root, {}, {}, {"net": net}, {}, {})


def test_digest_is_of_the_bytes(tmp_path: Path) -> None:
    """The digest is the SHA-256 that any other tool prints."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "net.onnx").write_bytes(b"bytes")
    digests = graph_digests(catalogue(tmp_path), ["net"])
    assert digests == {"net": hashlib.sha256(b"bytes").hexdigest()}


def test_equal_numbers_are_equal_work() -> None:
    """Writing 1 as 1.0 in a spec does not make stored measurements another's; 2 does."""
    (net,) = catalogue(Path()).models.values()
    one, point, two = (
        net.model_copy(update={"inputs": (Input(name="pixels", high=Decimal(high)),)})
        for high in ("1", "1.0", "2")
    )
    assert work_sha256(one, "inference") == work_sha256(point, "inference")
    assert work_sha256(one, "inference") != work_sha256(two, "inference")


def test_a_missing_file_says_who_wants_it(tmp_path: Path) -> None:
    """The message names the file, the model and what to do."""
    with pytest.raises(ModelError, match=r"net\.onnx: demanded .* model net names; .*export it"):
        graph_digests(catalogue(tmp_path), ["net"])
