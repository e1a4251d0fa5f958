"""Data files in each published format, and damaged ones."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from epochcost.errors import EpochcostError, InputError
from epochcost.specs.reference_data import DataFile, Dataset
from epochcost.train.datasets import load_examples, read_file, verify
from epochcost.train.pipeline import Examples

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (5, 3, 32, 32), np.uint8)
LABELS = np.array([3, 0, 9, 1, 1], np.uint8)
BOTH = DataFile(name="data", part="both")


def idx(values: NDArray[np.uint8]) -> bytes:
    """``values`` as a file in MNIST's format."""
    sizes = b"".join(size.to_bytes(4) for size in values.shape)
    return bytes([0, 0, 8, values.ndim]) + sizes + values.tobytes()


def written(folder: Path, content: bytes) -> Path:
    """Write a file with ``content``."""
    path = folder / "data"
    path.write_bytes(content)
    return path


def loaded(
    folder: Path,
    form: str,
    files: Sequence[Mapping[str, str]],
    contents: Mapping[str, bytes],
    *,
    length: int = 1,
    **data: Any,
) -> Examples:
    """Write ``contents`` into ``folder`` and load them as a data set with two held-out examples."""
    document = {
        **{"id": "toy", "name": "Toy", "example": "an example", "shape": "2", "source": "made up"},
        **{"training_examples": 3, "held_out_examples": 2},
        "data": {"format": form, "files": files, **data},
    }
    (folder / "toy").mkdir()
    for name, content in contents.items():
        (folder / "toy" / name).write_bytes(content)
    return load_examples(Dataset.model_validate(document), folder, length, length)


def tar(folder: Path, members: dict[str, bytes]) -> Path:
    """Write a gzipped tar archive of ``members``."""
    path = folder / "data"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("pack", [lambda content: content, gzip.compress])
def test_idx_is_read_plain_and_packed(tmp_path: Path, pack: Any) -> None:
    """Images and labels in MNIST's format, plain and gzipped."""
    path = written(tmp_path, pack(idx(IMAGES[:, 0])))
    images, nothing = read_file(path, BOTH, "idx")
    assert nothing is None
    np.testing.assert_array_equal(images, IMAGES[:, 0])
    path.write_bytes(pack(idx(LABELS)))
    labels = read_file(path, BOTH.model_copy(update={"holds": "labels"}), "idx")[1]
    np.testing.assert_array_equal(labels, LABELS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (idx(LABELS)[:-1], "got 4 bytes of numbers where its header announces 5"),
        (idx(LABELS) + b"x", "got 6 bytes of numbers where its header announces 5"),
        (gzip.compress(idx(LABELS), mtime=0)[:-9], "ended before|Compressed file"),
        (b"\0\0\x08\x01\xff\xff\xff\xff", "its header announces 4,294,967,295"),
        (b"\0\0\x0e\x02\xff\xff\xff\xff\xff\xff\xff\xff", "its header announces 147,57"),
        (b"\x89PNG", "no IDX header"),
        (b"", "expected a whole file in the format idx"),
    ],
)
def test_a_damaged_idx_file_is_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    """A truncated or too long file, or a header of gigabytes that are not allocated."""
    with pytest.raises(InputError, match=message):
        read_file(written(tmp_path, content), BOTH, "idx")


def test_cifar_binary_is_read_from_its_archive(tmp_path: Path) -> None:
    """Archive members are read in the spec's order, and other members are ignored."""
    rows = [bytes([label]) + image.tobytes() for label, image in zip(LABELS, IMAGES, strict=True)]
    path = tar(
        tmp_path,
        {
            "cifar/b.bin": b"".join(rows[3:]),
            "../../evil": b"x",
            "cifar/a.bin": b"".join(rows[:3]),
        },
    )
    file = BOTH.model_copy(update={"members": ("a.bin", "b.bin")})
    images, labels = read_file(path, file, "cifar-binary")
    np.testing.assert_array_equal(images, IMAGES)
    np.testing.assert_array_equal(labels, LABELS)
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError, match=r"format cifar-binary, got no member c.bin"):
        read_file(path, BOTH.model_copy(update={"members": ("c.bin",)}), "cifar-binary")
    with pytest.raises(InputError, match="no whole number of records of 3073"):
        read_file(written(tmp_path, rows[0][:-1]), BOTH, "cifar-binary")


def test_rows_of_a_csv_are_read_from_members_of_a_zip(tmp_path: Path) -> None:
    """Members are found by base name; a missing and an encrypted member are errors."""
    path, file = tmp_path / "data", BOTH.model_copy(update={"members": ("a.csv", "b.csv")})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("deep/b.csv", b"2,1\n")
        archive.writestr("a.csv", b"x,label\n1,0")
    examples, labels = read_file(path, file, "csv")
    np.testing.assert_array_equal(examples, [[1], [2]])
    np.testing.assert_array_equal(labels, [0, 1])
    with pytest.raises(InputError, match=r"format csv, got no member c\.csv"):
        read_file(path, BOTH.model_copy(update={"members": ("c.csv",)}), "csv")
    content = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        while (start := content.find(mark)) >= 0 and not content[start + place] & 1:
            content[start + place] |= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"format csv, got .*encrypted"):
        read_file(path, file, "csv")


@pytest.mark.parametrize("first", [b"1e+00", b"-1.5", b"\xef\xbb\xbf1.0", b"1E5"])
def test_a_csv_without_column_names_keeps_its_first_row(tmp_path: Path, first: bytes) -> None:
    """A first row of numbers is no line of names: an exponent, a sign and a byte-order mark."""
    labels = read_file(written(tmp_path, first + b",0\n2,1\n"), BOTH, "csv")[1]
    np.testing.assert_array_equal(labels, [0, 1])


CSV = {"name": "a.csv", "part": "both"}
IDX = [{"name": name, "part": "both", "holds": name} for name in ("examples", "labels")]


@pytest.mark.parametrize(
    ("form", "files", "contents", "data", "message"),
    [
        ("idx", IDX, (IMAGES, np.arange(6, dtype=np.uint8)), {}, "got 5 examples and 6 labels"),
        ("idx", IDX, (IMAGES[:, 0], LABELS), {"shape": [512]}, "got 10 examples and 5 labels"),
        ("idx", IDX, (IMAGES, LABELS), {"shape": [7]}, r"the shape \[7\], got \[3, 32, 32\]"),
        ("idx", IDX, (IMAGES[:2], LABELS[:2]), {}, "more examples than the 2 held out, got 2"),
        ("idx", IDX[:1], (IMAGES,), {}, "part both: expected a file that holds the labels"),
        (
            "idx",
            [*IDX, {**IDX[0], "name": "more"}],
            (IMAGES, LABELS, IMAGES[:, 0]),
            {},
            r"expected examples of the same shape in every file, got \[3, 32, 32\] and \[32, 32\]",
        ),
        (
            "csv",
            [CSV, {"name": "b.csv", "part": "held-out"}],
            (b"1,0\n", b"1,0\n"),
            {},
            'expected part = "both" of every file, or files .* got "both" and "held-out"',
        ),
        ("text", [{**CSV, "part": "training"}], (b"abc",), {}, 'every file, got "training"'),
    ],
)
def test_files_that_do_not_belong_together_are_one_line(
    tmp_path: Path, form: str, files: Any, contents: Any, data: Any, message: str
) -> None:
    """Numbers of examples, shapes, or parts."""
    arrays = [each if isinstance(each, bytes) else idx(each) for each in contents]
    named = {file["name"]: each for file, each in zip(files, arrays, strict=False)}
    with pytest.raises(EpochcostError, match=f"data set toy: .*{message}"):
        loaded(tmp_path, form, files, named, **data)


def test_a_link_in_a_tar_is_no_member(tmp_path: Path) -> None:
    """A symbolic link with a member's name is not followed."""
    (tmp_path / "secret").write_bytes(b"secret")
    with tarfile.open(tmp_path / "data", "w") as archive:
        link = tarfile.TarInfo("a.csv")
        link.type, link.linkname = tarfile.SYMTYPE, "secret"
        archive.addfile(link)
    with pytest.raises(InputError, match=r"no member a\.csv"):
        read_file(tmp_path / "data", BOTH.model_copy(update={"members": ("a.csv",)}), "csv")


def test_a_damaged_xz_archive_is_one_line(tmp_path: Path) -> None:
    """A tar archive of xz with changed bytes is an error that names the file."""
    with tarfile.open(tmp_path / "data", "w:xz") as archive:
        archive.addfile(tarfile.TarInfo("other"))
        member = tarfile.TarInfo("a.txt")
        member.size = 200_000
        archive.addfile(member, io.BytesIO(RNG.bytes(member.size)))
    content = bytearray((tmp_path / "data").read_bytes())
    content[100_000:100_100] = bytes(100)
    file = BOTH.model_copy(update={"members": ("a.txt",)})
    with pytest.raises(InputError, match="data: expected a whole file in the format text"):
        read_file(written(tmp_path, bytes(content)), file, "text")


def test_a_text_is_its_characters(tmp_path: Path) -> None:
    """All files of a text share one sorted alphabet; bytes that are no text are an error."""
    texts = {"a.txt": "bcä a😀", "b.txt": "abc"}
    files = [{"name": name, "part": "both"} for name in texts]
    contents = {name: text.encode() for name, text in texts.items()}
    examples = loaded(tmp_path, "text", files, contents, length=2)
    np.testing.assert_array_equal(examples.training.examples, [[2, 3], [4, 0]])
    np.testing.assert_array_equal(examples.held_out.examples, [[1, 5], [1, 2]])
    with pytest.raises(InputError, match="format text, got 'utf-8' codec"):
        read_file(written(tmp_path, b"ab\xff"), BOTH, "text")
    with pytest.raises(InputError, match="format text, got NUL characters"):
        read_file(tar(tmp_path, {"a.txt": b"abc"}), BOTH, "text")


@pytest.mark.parametrize(
    "content", [b"1,2\n1,x\n", b"1,2\n1\n", b"1,0.5\n", b"a,b\n1,nan\n", b"a,b\n", b""]
)
def test_a_damaged_csv_is_one_line(tmp_path: Path, content: bytes) -> None:
    """A bad number, rows of unequal length, a fractional label and a file without rows."""
    with pytest.raises(InputError, match="expected a whole file in the format csv, got "):
        read_file(written(tmp_path, content), BOTH, "csv")


def test_a_file_is_held_to_its_spec(tmp_path: Path) -> None:
    """A wrong length or hash is reported with the expected and the found value."""
    path = written(tmp_path, b"abc")
    good = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    stated = BOTH.model_copy(update={"size_bytes": 3, "sha256": good})
    assert verify(path, stated) == good
    with pytest.raises(InputError, match="expected 4 bytes, got 3"):
        verify(path, stated.model_copy(update={"size_bytes": 4}))
    with pytest.raises(InputError, match=f"expected SHA-256 {'0' * 64}, got {good}"):
        verify(path, stated.model_copy(update={"sha256": "0" * 64}))
    with pytest.raises(InputError, match="expected a file of data, got No such file"):
        verify(tmp_path / "none", stated)
