"""Archives of data sets: what is read of them, and every way to lead a reader astray."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from epochcost.errors import InputError
from epochcost.specs.data import DataFile
from epochcost.train.archives import members, opened
from epochcost.train.readers import read_file

BOTH = DataFile(name="data", part="both", members=("a.bin", "b.bin"))
PLAIN = DataFile(name="data", part="both")
Archive = dict[str, bytes]


def tar(path: Path, contents: Archive, *more: tarfile.TarInfo) -> None:
    """A gzipped tar, with members of any kind after the ordinary ones."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for member in more:
            archive.addfile(member)


def zipped(path: Path, contents: Archive) -> None:
    """A compressed zip."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)


@pytest.mark.parametrize("pack", [tar, zipped])
def test_members_come_in_the_order_of_the_spec(
    tmp_path: Path, pack: Callable[[Path, Archive], None]
) -> None:
    """By their last name, wherever a path says they go; nothing is written."""
    path = tmp_path / "data"
    pack(path, {"../../b.bin": b"B", "/etc/passwd": b"root", "deep\\er\\a.bin": b"A"})
    assert members(path, BOTH) == [b"A", b"B"]
    with opened(path, BOTH) as file:
        assert file.read() == b"AB"
    assert list(tmp_path.rglob("*")) == [path]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_packed_file_is_its_content(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Of any of the kinds that one can be packed in."""
    path = tmp_path / "data"
    path.write_bytes(pack(b"content"))
    assert members(path, PLAIN) == [b"content"]


def test_a_format_that_knows_no_archives_is_read_from_one(tmp_path: Path) -> None:
    """Rows of a CSV in two members of a zip."""
    zipped(tmp_path / "data", {"a.bin": b"x,label\n1,0\n", "b.bin": b"2,1\n"})
    examples, labels = read_file(tmp_path / "data", BOTH, "csv")
    np.testing.assert_array_equal(examples, [[1], [2]])
    np.testing.assert_array_equal(labels, [0, 1])


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar_are_no_members(tmp_path: Path, kind: bytes) -> None:
    """Not even under the name of one: what a link points to is not read."""
    (tmp_path / "secret").write_bytes(b"secret")
    link = tarfile.TarInfo("b.bin")
    link.type, link.linkname = kind, "secret"
    tar(tmp_path / "data", {"a.bin": b"A"}, link)
    with pytest.raises(ValueError, match=r"no member b\.bin"):
        members(tmp_path / "data", BOTH)


def test_links_in_a_zip_are_no_members(tmp_path: Path) -> None:
    """Nor what they would be taken for, a file that holds its target's name."""
    link = zipfile.ZipInfo("b.bin")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "data", "w") as archive:
        archive.writestr("a.bin", b"A")
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(ValueError, match=r"no member b\.bin"):
        members(tmp_path / "data", BOTH)


@pytest.mark.parametrize("pack", [tar, zipped])
def test_two_members_of_a_name_are_refused(
    tmp_path: Path, pack: Callable[[Path, Archive], None]
) -> None:
    """Which one is meant is not guessed."""
    pack(tmp_path / "data", {"a.bin": b"A", "b.bin": b"B", "other/a.bin": b"X"})
    with pytest.raises(ValueError, match=r"two members a\.bin"):
        members(tmp_path / "data", BOTH)


@pytest.mark.parametrize(
    ("pack", "contents"),
    [
        (tar, {"a.bin": b"A", "b.bin": bytes(2**22)}),
        (tar, {"unasked": bytes(2**22), "a.bin": b"A", "b.bin": b"B"}),
        (zipped, {"a.bin": b"A", "b.bin": bytes(2**22)}),
        (zipped, {"a.bin": bytes(2**20), "b.bin": bytes(2**20)}),
    ],
)
def test_a_bomb_stops_at_what_the_spec_allows(
    tmp_path: Path, pack: Callable[[Path, Archive], None], contents: Archive
) -> None:
    """In a member that is read, in one before it, or in all of them together."""
    pack(tmp_path / "data", contents)
    file = BOTH.model_copy(update={"unpacked_bytes": 1_500_000})
    with pytest.raises(ValueError, match=r"beyond what its spec says|1,500,000 bytes that it may"):
        members(tmp_path / "data", file)


def test_a_member_that_announces_more_than_it_has_is_not_made(tmp_path: Path) -> None:
    """A sparse file of terabytes takes no bytes in an archive, and gets none in memory."""
    sparse = tarfile.TarInfo("b.bin")
    sparse.size = 2**42
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.bin"))
    header = sparse.tobuf(tarfile.GNU_FORMAT)
    (tmp_path / "data").write_bytes(content.getvalue()[:512] + header + bytes(1024))
    with pytest.raises(ValueError, match=r"a member b\.bin of 4,398,046,511,104 bytes"):
        members(tmp_path / "data", BOTH)


@pytest.mark.parametrize("form", ["text", "csv", "cifar-binary"])
def test_a_packed_bomb_is_one_line(tmp_path: Path, form: str) -> None:
    """Without a word in the spec, a file may unpack to a hundred times its length and a MiB."""
    path = tmp_path / "data"
    path.write_bytes(gzip.compress(b"1,2\n" * 2**21))
    limit = 100 * path.stat().st_size + 2**20
    with pytest.raises(InputError, match=f"got more than the {limit:,} bytes that it may unpack"):
        read_file(path, PLAIN, form)  # type: ignore[arg-type]


def test_a_long_file_unpacks_to_a_bounded_length(tmp_path: Path) -> None:
    """64 MiB without a word in the spec: a text takes some twenty times its length."""
    path = tmp_path / "data"
    path.write_bytes(gzip.compress(random.Random(0).randbytes(2**20) + bytes(2**26), 1))
    with pytest.raises(InputError, match=r"the 67,108,864 bytes .* unpacked_bytes in"):
        read_file(path, PLAIN, "text")
    declared = PLAIN.model_copy(update={"unpacked_bytes": 2**26 + 2**20})
    assert len(members(path, declared)[0]) == 2**26 + 2**20


def test_arrays_of_an_npz_are_held_to_the_limit_too(tmp_path: Path) -> None:
    """Zeros that take a kilobyte in the file, and a member that is missing."""
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros(2**20), y=np.zeros(3))
    file = PLAIN.model_copy(update={"members": ("x", "y"), "unpacked_bytes": 2**20})
    with pytest.raises(InputError, match=r"a member x\.npy of 8,388,736 bytes, beyond what its"):
        read_file(tmp_path / "x.npz", file, "numpy")
    with pytest.raises(InputError, match=r"no member z\.npy"):
        read_file(tmp_path / "x.npz", PLAIN.model_copy(update={"members": ("y", "z")}), "numpy")


def test_an_encrypted_zip_is_one_line(tmp_path: Path) -> None:
    """The flag of a password, which nobody can give here."""
    zipped(tmp_path / "data", {"a.bin": b"A", "b.bin": b"B"})
    content = bytearray((tmp_path / "data").read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + place] |= 1
    (tmp_path / "data").write_bytes(content)
    with pytest.raises(InputError, match=r"format cifar-binary, got .*encrypted"):
        read_file(tmp_path / "data", BOTH, "cifar-binary")
