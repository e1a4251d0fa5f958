"""Data files are imported or fetched, checked against the spec, and read as examples."""

from __future__ import annotations

import gzip
import hashlib
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from epochcost.errors import CapabilityError, InputError
from epochcost.execute.data_files import PlacedFile, fetch_files, import_files
from epochcost.specs.reference_data import DataFile, Dataset
from epochcost.train.datasets import load_examples
from fake_publisher import Publisher, dataset_of, published

RNG = np.random.default_rng(0)
ROWS = b"1,0\n2,1\n3,0\n4,1\n5,0\n"
FILE = DataFile(name="x.csv", part="both")
KNOWN = FILE.model_copy(update={"sha256": hashlib.sha256(ROWS).hexdigest(), "size_bytes": 20})


def idx(values: NDArray[np.uint8]) -> bytes:
    """``values`` as a gzipped file in MNIST's format."""
    sizes = b"".join(size.to_bytes(4) for size in values.shape)
    return gzip.compress(bytes([0, 0, 8, values.ndim]) + sizes + values.tobytes())


def imported(dataset: Dataset, source: Path, folder: Path) -> list[PlacedFile]:
    """Import the files of ``source``, and check that no partial file remains."""
    held = import_files(dataset, source, folder)
    assert list(folder.rglob("*.partial")) == []
    return list(held)


def test_idx_files_become_examples(tmp_path: Path) -> None:
    """A folder with MNIST's four files, as they would be downloaded by hand."""
    files, arrays = [], {}
    for part, stem, count in (("training", "train", 40), ("held-out", "t10k", 9)):
        for holds, kind in (("examples", "images-idx3"), ("labels", "labels-idx1")):
            shape = (count, 28, 28) if holds == "examples" else (count,)
            values = RNG.integers(0, 10, shape, np.uint8)
            name = f"{stem}-{kind}-ubyte.gz"
            arrays[part, holds] = values
            files.append({"name": name, "part": part, "holds": holds})
            (tmp_path / name).write_bytes(idx(values))
    (tmp_path / "readme.txt").write_text("not of it")
    dataset = dataset_of(*(DataFile.model_validate(file) for file in files), form="idx")
    held = imported(dataset, tmp_path, tmp_path / "data")
    assert [each.origin for each in held] == ["imported"] * 4
    examples = load_examples(dataset, tmp_path / "data", 1, 1)
    for part, found in (("training", examples.training), ("held-out", examples.held_out)):
        np.testing.assert_array_equal(found.examples, arrays[part, "examples"])
        np.testing.assert_array_equal(found.labels, arrays[part, "labels"])


def test_a_file_that_is_not_what_the_spec_says_replaces_nothing(tmp_path: Path) -> None:
    """A wrong length, a wrong hash, and an unreadable file whose spec has no hash."""
    source, folder = tmp_path / "x.csv", tmp_path / "data"
    source.write_bytes(ROWS)
    imported(dataset_of(KNOWN), source, folder)
    for file, content, words in (
        (KNOWN, ROWS[:-1], r"x\.csv: expected 20 bytes, got 19.*was not imported"),
        (KNOWN, ROWS.replace(b"5", b"6"), f"expected SHA-256 {KNOWN.sha256}, got"),
        (FILE, b"no numbers\n", "expected a whole file in the format csv"),
    ):
        source.write_bytes(content)
        with pytest.raises(InputError, match=words):
            imported(dataset_of(file), source, folder)
    assert (folder / "made/x.csv").read_bytes() == ROWS


def test_a_full_disk_keeps_no_part_of_a_file(tmp_path: Path) -> None:
    """The copy that did not fit is removed, so that it takes no room on the full disk."""
    source = tmp_path / "x.csv"
    source.write_bytes(ROWS)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(CapabilityError, match="free some space or name another folder"):
            import_files(dataset_of(KNOWN), source, tmp_path / "data")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert list((tmp_path / "data/made").iterdir()) == []


def test_a_file_of_another_name_is_told_the_right_ones(tmp_path: Path) -> None:
    """The message lists the expected names, for a file, a folder and a path without a file."""
    dataset, data = dataset_of(KNOWN), tmp_path / "data"
    (tmp_path / "y.csv").write_bytes(ROWS)
    for path, words in (
        (tmp_path / "y.csv", r"expected files of made, named x\.csv, got y\.csv: give a file"),
        (tmp_path, r"expected files of made, named x\.csv, got a folder without them"),
        (tmp_path / "z.csv", r"expected files of made, named x\.csv, got nothing"),
    ):
        with pytest.raises(InputError, match=words):
            imported(dataset, path, data)
    assert not data.exists()


@pytest.fixture(name="publisher")
def publisher_fixture() -> Iterator[Publisher]:
    """A local server that offers one file."""
    with published({"/x.csv": ROWS}) as publisher:
        yield publisher


def fetched(folder: Path, *files: DataFile) -> list[PlacedFile]:
    """Fetch the files of a data set into ``folder``."""
    return list(fetch_files(dataset_of(*files), folder, lambda _: None))


def test_a_file_is_fetched_once(publisher: Publisher, tmp_path: Path) -> None:
    """The command prints the file's address; a sound file in place is not requested again."""
    lines: list[str] = []
    (file,) = fetch_files(dataset_of(publisher.file()), tmp_path, lines.append)
    assert (file.path.read_bytes(), file.origin) == (ROWS, "fetched")
    assert lines == [f"fetching {publisher.address}/x.csv"]
    assert [each.origin for each in fetched(tmp_path, publisher.file())] == ["is there"]
    assert publisher.requests == ["/x.csv"]
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["x.csv"]


def test_a_damaged_file_in_place_is_fetched_anew(publisher: Publisher, tmp_path: Path) -> None:
    """Damage is recognised by the hash, or by the length if the spec has no hash."""
    for file in (publisher.file(), publisher.file(sha256=None)):
        (placed,) = fetched(tmp_path, file)
        placed.path.write_bytes(ROWS[:-1])
        assert [each.origin for each in fetched(tmp_path, file)] == ["fetched"]
        assert placed.path.read_bytes() == ROWS


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"sha256": "0" * 64}, "does not match the known hash"),
        (
            {"sha256": None, "size_bytes": 3},
            "expected 3 bytes, got 20; the download of .* was removed",
        ),
        ({"sha256": None, "size_bytes": None, "holds": "labels", "address": "/text"}, "format csv"),
        ({"address": None}, r"expected an address of x\.csv in its spec.*epochcost data import"),
    ],
)
def test_nothing_is_kept_of_another_file(
    publisher: Publisher, tmp_path: Path, changed: dict[str, Any], words: str
) -> None:
    """A wrong hash, a wrong length, an unreadable file and a spec without an address."""
    if changed.get("address"):
        publisher.offers["/text"] = b"no numbers"
        changed = {**changed, "address": f"{publisher.address}/text"}
    with pytest.raises(InputError, match=words):
        fetched(tmp_path, publisher.file(**changed))
    assert list(tmp_path.rglob("*.csv")) == []


def test_a_download_that_fails_leaves_nothing(publisher: Publisher, tmp_path: Path) -> None:
    """The connection breaks, the file is missing, or the server is down."""
    publisher.drop_after = 5
    for file in (
        publisher.file(),
        publisher.file(address=f"{publisher.address}/none"),
        publisher.file(address="http://127.0.0.1:9/x.csv"),
    ):
        with pytest.raises(CapabilityError, match=r"expected a file to download.*same command"):
            fetched(tmp_path, file)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
