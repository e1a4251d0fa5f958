"""The folder of results: what is written, found, replaced and refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from epochcost.results.records import Result
from epochcost.results.store import MAX_FILE_BYTES, ResultStore, load_all
from sound_results import sound_results

MakeResult = Callable[..., Result]


def write(folder: Path, result: Result) -> Path:
    """Store a result in its hardware's folder, which is made."""
    (folder / result.hardware).mkdir(parents=True, exist_ok=True)
    return ResultStore(folder).write(result)


def test_a_repeated_measurement_replaces_its_predecessor(
    tmp_path: Path, make_result: MakeResult
) -> None:
    """The same trial on the same host has one file, with the later measurement."""
    write(tmp_path, make_result(hour=1))
    write(tmp_path, make_result(hour=2))
    assert sound_results(tmp_path) == (make_result(hour=2),)


def test_another_host_is_kept_apart(tmp_path: Path, make_result: MakeResult) -> None:
    """Results of two hosts of one hardware are separate files."""
    results = [make_result(fingerprint=digits * 16) for digits in ("1", "2")]
    for result in results:
        write(tmp_path, result)
    assert sound_results(tmp_path) == tuple(results)


def test_damaged_files_are_named_and_the_others_load(
    tmp_path: Path, make_result: MakeResult
) -> None:
    """A bad file is reported and does not hide the good files."""
    write(tmp_path, make_result())
    bad = tmp_path / "local" / "bad.json"
    bad.write_text("{")
    loaded = load_all(tmp_path)
    assert tuple(loaded.records.values()) == (make_result(),)
    assert [(fault.path, fault.line, fault.column) for fault in loaded.faults] == [(bad, 1, 2)]


def test_a_result_in_the_wrong_folder_is_a_fault(tmp_path: Path, make_result: MakeResult) -> None:
    """A file that was moved to another machine's folder is refused."""
    path = write(tmp_path, make_result())
    (tmp_path / "p2.xlarge").mkdir()
    path.rename(tmp_path / "p2.xlarge" / path.name)
    loaded = load_all(tmp_path)
    assert tuple(loaded.records.values()) == ()
    assert "expected hardware 'p2.xlarge'" in loaded.faults[0].message


def test_links_out_of_the_folder_and_odd_files_are_refused(
    tmp_path: Path, make_result: MakeResult
) -> None:
    """Files outside the folder, irregular files and huge files are not read."""
    outside = write(tmp_path / "outside", make_result())
    local = tmp_path / "results" / "local"
    local.mkdir(parents=True)
    (local / "a.json").symlink_to(outside)
    (local / "b.json").mkdir()
    with (local / "c.json").open("wb") as huge:
        huge.truncate(MAX_FILE_BYTES + 1)
    (local / "d.json").symlink_to(local / "nowhere")
    (local / "e.json").symlink_to("e.json")
    os.mkfifo(local / "f.json")
    loaded = load_all(tmp_path / "results")
    assert tuple(loaded.records.values()) == ()
    assert [fault.path.name for fault in loaded.faults] == [f"{name}.json" for name in "abcdef"]


def test_find_answers_only_for_the_same_work_on_the_same_host(
    tmp_path: Path, make_result: MakeResult
) -> None:
    """A result is found for the same trial on the same hardware and host only."""
    result = make_result()
    write(tmp_path, result)
    store = ResultStore(tmp_path)
    fingerprint = result.environment.fingerprint
    assert store.find(result.trial, "local", fingerprint) == result
    assert store.find(result.trial, "local", fingerprint[:4] + "0" * 12) is None
    assert store.find(result.trial, "p2.xlarge", fingerprint) is None
    assert store.find(make_result(batch_size=64).trial, "local", fingerprint) is None


def test_a_damaged_result_is_measured_again(tmp_path: Path, make_result: MakeResult) -> None:
    """A damaged file does not count as a finished trial."""
    result = make_result()
    path = write(tmp_path, result)
    path.write_bytes(path.read_bytes()[:100])
    assert ResultStore(tmp_path).find(result.trial, "local", "f00d" * 4) is None
