"""Fetching from a server that drops, lies, redirects and changes its mind."""

from __future__ import annotations

import hashlib
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from epochcost.errors import CapabilityError, InputError
from epochcost.execute import fetching
from epochcost.execute.data_files import Held, writing
from epochcost.specs.data import DataFile
from fake_publisher import Offer, Publisher, dataset_of, published

# As a CSV of numbers, so that it can be read where its spec has no hash.
ROWS = b"".join(b"%d,%d\n" % (row, row % 2) for row in range(20_000))
OTHER = ROWS.replace(b"7", b"8")
SHORT = ROWS[: ROWS.index(b"\n", 9_000) + 1]
TAGGED = {"ETag": '"one"'}


@pytest.fixture(name="publisher")
def publisher_fixture() -> Iterator[Publisher]:
    """Offers one file."""
    with published({"/x.csv": Offer(ROWS, TAGGED)}) as publisher:
        yield publisher


def fetch(folder: Path, *files: DataFile) -> list[Held]:
    """All files of a data set, with nobody watching."""
    return list(fetching.fetch_files(dataset_of(*files), folder, lambda *_: None))


def left(folder: Path) -> list[str]:
    """What is in the data set's folder."""
    return sorted(path.name for path in (folder / "made").iterdir())


def drop(publisher: Publisher, folder: Path, file: DataFile) -> None:
    """Fetch a file of which only its beginning comes."""
    publisher.offers["/x.csv"].drop_after = 50_000
    with pytest.raises(CapabilityError, match=r"got 50,000 bytes and then .*same command again"):
        fetch(folder, file)
    publisher.offers["/x.csv"].drop_after = None


def test_a_file_is_fetched_once(publisher: Publisher, tmp_path: Path) -> None:
    """Bytes are counted on their way; what is there and sound is not asked for again."""
    file, heard = publisher.file(), []
    made = dataset_of(file)
    (held,) = fetching.fetch_files(made, tmp_path, lambda *told: heard.append(told))
    assert (held.path.read_bytes(), held.how) == (ROWS, "fetched")
    assert heard[-1] == ("x.csv", len(ROWS), len(ROWS))
    assert [each.how for each in fetch(tmp_path, file)] == ["is there"]
    assert (len(publisher.requests), left(tmp_path)) == (1, ["x.csv"])


def test_a_damaged_file_in_place_is_fetched_anew(publisher: Publisher, tmp_path: Path) -> None:
    """By its hash."""
    (held,) = fetch(tmp_path, publisher.file())
    held.path.write_bytes(OTHER)
    assert [each.how for each in fetch(tmp_path, publisher.file())] == ["fetched"]
    assert held.path.read_bytes() == ROWS


@pytest.mark.parametrize(
    "headers", [TAGGED, {"Last-Modified": "Mon, 02 Nov 2026 08:00:00 GMT"}, {}]
)
def test_a_dropped_download_goes_on(
    publisher: Publisher, tmp_path: Path, headers: dict[str, str]
) -> None:
    """From where it stopped, on the condition that the file is the same one."""
    publisher.offers["/x.csv"].headers = headers
    drop(publisher, tmp_path, publisher.file())
    assert left(tmp_path) == ["x.csv.partial", "x.csv.partial.json"]
    (held,) = fetch(tmp_path, publisher.file())
    assert held.path.read_bytes() == ROWS
    assert publisher.ranges == [None, "bytes=50000-"]
    assert publisher.requests[1][1].get("if-range") == next(iter(headers.values()), None)
    assert left(tmp_path) == ["x.csv"]


def test_what_nothing_vouches_for_is_not_gone_on_with(publisher: Publisher, tmp_path: Path) -> None:
    """Neither a validator of the server nor a hash in the spec: another file may be as long."""
    publisher.offers["/x.csv"].headers = {}
    drop(publisher, tmp_path, publisher.file(sha256=None))
    publisher.offers["/x.csv"].content = OTHER
    (held,) = fetch(tmp_path, publisher.file(sha256=None))
    assert held.path.read_bytes() == OTHER
    assert publisher.ranges == [None, None]


def test_a_server_without_ranges_sends_all_again(publisher: Publisher, tmp_path: Path) -> None:
    """Nothing is appended to what had come."""
    publisher.offers["/x.csv"].ranges = False
    drop(publisher, tmp_path, publisher.file())
    (held,) = fetch(tmp_path, publisher.file())
    assert held.path.read_bytes() == ROWS
    assert publisher.ranges == [None, "bytes=50000-"]


@pytest.mark.parametrize("conditions", [True, False])
@pytest.mark.parametrize("content", [OTHER, ROWS * 2, SHORT])
def test_a_file_that_changed_is_not_glued_together(
    publisher: Publisher, tmp_path: Path, conditions: bool, content: bytes
) -> None:
    """Of the same length, longer or shorter; where the server knows no conditions too."""
    drop(publisher, tmp_path, publisher.file(size_bytes=None, sha256=None))
    publisher.offers["/x.csv"] = Offer(content, {"ETag": '"two"'}, conditions=conditions)
    (held,) = fetch(tmp_path, publisher.file(size_bytes=None, sha256=None))
    assert held.path.read_bytes() == content
    assert held.sha256 == hashlib.sha256(content).hexdigest()


def test_another_address_begins_anew(publisher: Publisher, tmp_path: Path) -> None:
    """What came from elsewhere is not gone on with, and no note is as good as none."""
    drop(publisher, tmp_path, publisher.file())
    publisher.offers["/moved.csv"] = Offer(ROWS, TAGGED)
    moved = publisher.file(address=f"{publisher.address}/moved.csv")
    publisher.offers["/moved.csv"].drop_after = 50_000
    with pytest.raises(CapabilityError):
        fetch(tmp_path, moved)
    publisher.offers["/moved.csv"].drop_after = None
    (tmp_path / "made/x.csv.partial.json").write_text("{")
    fetch(tmp_path, moved)
    assert publisher.ranges == [None, None, None]


def test_a_whole_part_is_not_asked_for_again(publisher: Publisher, tmp_path: Path) -> None:
    """Killed between the last byte and the check."""
    drop(publisher, tmp_path, publisher.file())
    (tmp_path / "made/x.csv.partial").write_bytes(ROWS)
    fetch(tmp_path, publisher.file())
    assert len(publisher.requests) == 1


def test_a_download_in_chunks_says_no_length(publisher: Publisher, tmp_path: Path) -> None:
    """Whole, it is checked as any; broken, it is told so and begins again."""
    publisher.offers["/x.csv"].length = False
    drop(publisher, tmp_path, publisher.file(size_bytes=None))
    (held,) = fetch(tmp_path, publisher.file(size_bytes=None))
    assert held.path.read_bytes() == ROWS
    assert publisher.ranges == [None, None]


@pytest.mark.parametrize("length", [True, False])
@pytest.mark.parametrize("content", [ROWS * 3, ROWS[:100]])
def test_a_wrong_length_is_told_with_both(
    publisher: Publisher, tmp_path: Path, length: bool, content: bytes
) -> None:
    """Before it has come, where the server says it; and as soon as it is too much, where not."""
    publisher.offers["/x.csv"].length = length
    file = publisher.file()
    publisher.offers["/x.csv"].content = content
    heard: list[int] = []
    with pytest.raises((InputError, CapabilityError), match=f"expected {len(ROWS):,} bytes, got"):
        list(fetching.fetch_files(dataset_of(file), tmp_path, lambda *told: heard.append(told[1])))
    assert max(heard, default=0) < (1 if length else len(ROWS))
    assert "x.csv" not in left(tmp_path)


def test_a_wrong_hash_leaves_nothing(publisher: Publisher, tmp_path: Path) -> None:
    """Both hashes are told, and what may be the cause."""
    file = publisher.file()
    publisher.offers["/x.csv"].content = OTHER
    with pytest.raises(InputError, match=f"SHA-256 {file.sha256}, got .*nothing was kept of what"):
        fetch(tmp_path, file)
    assert left(tmp_path) == []


def test_what_has_no_hash_has_to_be_readable(publisher: Publisher, tmp_path: Path) -> None:
    """A page of a portal in the place of data."""
    publisher.offers["/x.csv"].content = b"<html>Please log in</html>"
    with pytest.raises(InputError, match="expected a whole file in the format csv, got"):
        fetch(tmp_path, publisher.file(size_bytes=None, sha256=None))
    assert left(tmp_path) == []


def test_redirects_on_one_host_are_followed(publisher: Publisher, tmp_path: Path) -> None:
    """A few, and a download goes on through them."""
    offer = publisher.offers["/x.csv"]
    publisher.offers["/real.csv"] = offer
    publisher.offers["/second"] = Offer(status=307, headers={"Location": "/real.csv"})
    publisher.offers["/x.csv"] = Offer(status=302, headers={"Location": "/second"})
    file = publisher.file(content=ROWS)
    offer.drop_after = 50_000
    with pytest.raises(CapabilityError, match="got 50,000 bytes"):
        fetch(tmp_path, file)
    offer.drop_after = None
    (held,) = fetch(tmp_path, file)
    assert held.path.read_bytes() == ROWS
    assert publisher.ranges[-1] == "bytes=50000-"


@pytest.mark.parametrize(
    "target",
    [
        "http://localhost:{port}/real.csv",
        "https://example.org/real.csv",
        "file:///etc/passwd",
        "ftp://127.0.0.1/real.csv",
        "/x.csv",
    ],
)
def test_redirects_elsewhere_or_without_end_are_not(
    publisher: Publisher, tmp_path: Path, target: str
) -> None:
    """To another host, to other protocols, and round in a circle."""
    port = publisher.address.rpartition(":")[2]
    location = {"Location": target.format(port=port)}
    publisher.offers = {"/x.csv": Offer(status=302, headers=location), "/real.csv": Offer(ROWS)}
    with pytest.raises(
        CapabilityError, match=r"expected the file or 5 redirects with https.*got 30.*data import"
    ):
        fetch(tmp_path, publisher.file(content=ROWS))
    assert all(path == "/x.csv" for path, _ in publisher.requests)


@pytest.mark.parametrize(
    ("before", "after", "followed"),
    [
        ("https://a.org/x", "https://b.org/x", True),
        ("https://a.org/x", "http://a.org/x", False),
        ("http://a.org/x", "https://a.org/x", True),
        ("http://a.org/x", "https://b.org/x", False),
    ],
)
def test_encryption_is_never_given_up(before: str, after: str, followed: bool) -> None:
    """By any redirect."""
    asked = fetching.Request(before), None, 302, "Found", {}, after
    if followed:
        assert fetching._Redirects().redirect_request(*asked).full_url == after  # type: ignore[arg-type, union-attr]
    else:
        with pytest.raises(fetching.HTTPError):
            fetching._Redirects().redirect_request(*asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [403, 404, 500, 503])
def test_a_refusal_is_told(publisher: Publisher, tmp_path: Path, status: int) -> None:
    """With the server's number and what to do."""
    publisher.offers["/x.csv"].status = status
    with pytest.raises(CapabilityError, match=f"expected the file, got {status} .*data import"):
        fetch(tmp_path, publisher.file())


def test_a_server_that_is_silent_or_away(
    publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the midst of a file, and from the beginning."""
    monkeypatch.setattr(fetching, "_SILENCE_SECONDS", 0.2)
    offer = publisher.offers["/x.csv"]
    offer.drop_after, offer.stalls = 50_000, True
    with pytest.raises(CapabilityError, match=r"and then nothing for 0\.2 s: run the same command"):
        fetch(tmp_path, publisher.file())
    away = publisher.file(address="http://127.0.0.1:1/x.csv")
    with pytest.raises(CapabilityError, match="server that answers, got Connection refused"):
        fetch(tmp_path, away)


def test_a_full_disk_is_told_and_what_came_is_kept(publisher: Publisher, tmp_path: Path) -> None:
    """With room again, the same command goes on."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
        with pytest.raises(CapabilityError, match="expected room for the files of a data set, got"):
            fetch(tmp_path, publisher.file())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    (held,) = fetch(tmp_path, publisher.file())
    assert held.path.read_bytes() == ROWS
    assert publisher.ranges[-1] == "bytes=10000-"


def test_two_at_once_do_not_mix(publisher: Publisher, tmp_path: Path) -> None:
    """Whoever comes second is told to wait."""
    with (
        writing(tmp_path / "made"),
        pytest.raises(CapabilityError, match="only command that writes here"),
    ):
        fetch(tmp_path, publisher.file())


def test_a_file_without_an_address_is_not_fetched(publisher: Publisher, tmp_path: Path) -> None:
    """Nor any other of its data set."""
    with pytest.raises(InputError, match=r"expected an address of y\.csv in its spec"):
        fetch(tmp_path, publisher.file(), DataFile(name="y.csv", part="both"))
    assert publisher.requests == []
