"""Stored results are read back unchanged, in every old version; damage is named."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.plan.trial import Trial
from epochcost.results.records import (
    FORMAT_VERSION,
    DamagedResultError,
    Result,
    parse_result,
    serialise_result,
)

MakeResult = Callable[..., Result]
PATH = Path("local/net.json")
HISTORY = Path(__file__).parent / "data"


def document(result: Result, **changes: Any) -> bytes:
    """The file of a result with some top-level keys replaced."""
    return json.dumps(json.loads(serialise_result(result)) | changes).encode()


def test_a_result_is_read_back_unchanged(make_result: MakeResult) -> None:
    """A result is equal after it is written and read, to the last digit."""
    assert parse_result(serialise_result(make_result()), PATH) == make_result()


@pytest.mark.parametrize("version", range(1, FORMAT_VERSION + 1))
def test_every_version_ever_written_can_be_read(version: int) -> None:
    """A file of every earlier version is read as a result of the present version."""
    path = HISTORY / f"version-{version}.json"
    assert parse_result(path.read_bytes(), path).trial.model == "net"


def test_what_is_no_longer_kept_is_ignored(make_result: MakeResult) -> None:
    """Epochs in earlier files are ignored, and not written again."""
    former = json.loads(serialise_result(make_result())) | {"format_version": 3}
    former["measurement"]["epochs"] = {"steps": 200, "left_out": "an epoch would take a week"}
    assert parse_result(json.dumps(former).encode(), PATH) == make_result()
    assert b'"epochs"' not in serialise_result(make_result())


def test_a_trial_with_a_former_setting_is_refused() -> None:
    """A trial with another value of a dropped setting is not read, and the reason is told."""
    stored = json.loads((HISTORY / "version-3.json").read_text())
    stored["trial"]["graph_optimization"] = "basic"
    with pytest.raises(DamagedResultError, match="graph_optimization should be all, as in all"):
        parse_result(json.dumps(stored).encode(), PATH)


def test_the_present_version_writes_its_history_file(make_result: MakeResult) -> None:
    """The present version writes the bytes of its file. A changed record needs a new version."""
    assert (
        serialise_result(make_result()) == (HISTORY / f"version-{FORMAT_VERSION}.json").read_bytes()
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "complete JSON document"),
        (b"\xff\xfe", "UTF-8"),
        (b"[]", "document: Input should be an object"),
        (b"{}", "format_version: Field required"),
        (b'{"format_version": true}', "format_version: Input should be a valid integer"),
        (b'{"format_version": 1}', "trial_id: Field required"),
        (b"[" * 100_000, "JSON document of a result"),
        (b'{"format_version": 1' + b"0" * 5000 + b"}", "JSON document of a result"),
    ],
)
def test_damage_is_said_and_never_a_traceback(data: bytes, words: str) -> None:
    """The fault names the file and what was expected, whatever bytes the file has."""
    with pytest.raises(DamagedResultError, match=words) as caught:
        parse_result(data, PATH)
    assert caught.value.fault.path == PATH


@given(st.data())
def test_no_cut_of_a_file_is_taken_for_a_result(data: st.DataObject) -> None:
    """A file that was cut anywhere before its last line break is refused."""
    whole = (HISTORY / "version-1.json").read_bytes()
    length = data.draw(st.integers(0, len(whole) - 2))
    with pytest.raises(DamagedResultError):
        parse_result(whole[:length], PATH)


def test_a_newer_version_says_to_update(make_result: MakeResult) -> None:
    """A file of a newer epochcost is refused with the advice to update."""
    newer = document(make_result(), format_version=FORMAT_VERSION + 1)
    with pytest.raises(DamagedResultError, match="newer epochcost wrote this file; update"):
        parse_result(newer, PATH)


def test_an_edited_trial_is_noticed(make_result: MakeResult) -> None:
    """A trial that was edited no longer fits its id and is refused."""
    stored = json.loads(serialise_result(make_result()))
    stored["trial"]["batch_size"] = 64
    with pytest.raises(DamagedResultError, match="expected trial_id"):
        parse_result(json.dumps(stored).encode(), PATH)


def test_a_cpu_figure_is_never_a_cuda_result(make_result: MakeResult) -> None:
    """A result whose placement is not on the trial's provider is refused."""
    stored = json.loads(serialise_result(make_result()))
    stored["trial"]["provider"] = "cuda"
    stored["trial_id"] = Trial.model_validate(stored["trial"]).id
    with pytest.raises(DamagedResultError, match="CUDAExecutionProvider should have run there"):
        parse_result(json.dumps(stored).encode(), PATH)


@pytest.mark.parametrize("sample", [0, -1.0, math.nan, math.inf])
def test_impossible_times_are_refused(make_result: MakeResult, sample: float) -> None:
    """Samples that are not positive and finite are refused."""
    stored = json.loads(serialise_result(make_result()))
    stored["measurement"]["samples_seconds"] = [0.1, 0.2, sample]
    with pytest.raises(DamagedResultError, match=r"samples_seconds\.2"):
        parse_result(json.dumps(stored).encode(), PATH)


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("environment", "logical_cpus", 0),
        ("environment", "physical_cores", -1),
        ("environment", "memory_bytes", 0),
        ("environment", "timer_step_seconds", math.nan),
        ("measurement", "steps_taken", 0),
        ("measurement", "peak_memory_bytes", -1),
        ("measurement", "started_at", "2026-11-21T12:00:00"),  # in which time zone?
    ],
)
def test_impossible_facts_are_refused(
    make_result: MakeResult, part: str, key: str, value: object
) -> None:
    """An impossible value is a fault that names its key."""
    stored = json.loads(serialise_result(make_result()))
    stored[part][key] = value
    with pytest.raises(DamagedResultError, match=rf"{part}\.{key}"):
        parse_result(json.dumps(stored).encode(), PATH)
