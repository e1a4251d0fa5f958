"""Data files in each published format, and damaged ones."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from epochcost.errors import InputError
from epochcost.specs.reference_data import DataFile
from epochcost.train.datasets import read_file, verify

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
        archive.writestr("a.csv", b"x,label\n1,0\n")
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


def test_a_link_in_a_tar_is_no_member(tmp_path: Path) -> None:
    """A symbolic link with a member's name is not followed."""
    (tmp_path / "secret").write_bytes(b"secret")
    with tarfile.open(tmp_path / "data", "w") as archive:
        link = tarfile.TarInfo("a.csv")
        link.type, link.linkname = tarfile.SYMTYPE, "secret"
        archive.addfile(link)
    with pytest.raises(InputError, match=r"no member a\.csv"):
        read_file(tmp_path / "data", BOTH.model_copy(update={"members": ("a.csv",)}), "csv")


def test_a_text_is_its_characters(tmp_path: Path) -> None:
    """A text becomes indices of its sorted characters; invalid UTF-8 is an error."""
    indices = read_file(written(tmp_path, "abcä a😀".encode()), BOTH, "text")[0]
    np.testing.assert_array_equal(indices, [1, 2, 3, 4, 0, 1, 5])
    with pytest.raises(InputError, match="format text, got 'utf-8' codec"):
        read_file(written(tmp_path, b"ab\xff"), BOTH, "text")


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
