"""Ends of sweeps are stored beside results and read back; damaged ones are reported."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epochcost.plan.sweep import FailedSize
from epochcost.results.records import Result
from epochcost.results.sidecars import LIMIT_VERSION, BatchLimit
from epochcost.results.store import Loaded, load_all, load_sidecars, write_sidecar

MakeResult = Callable[..., Result]


@pytest.fixture(name="limit")
def limit_fixture(make_result: MakeResult) -> BatchLimit:
    """The end of a sweep that ran out of memory after three sizes."""
    result = make_result(batch_size=32)
    return BatchLimit(
        limit_version=LIMIT_VERSION,
        sweep_id=result.trial.model_copy(update={"batch_size": 0}).id,
        trial=result.trial,
        hardware="local",
        ended_at=dt.datetime(2026, 11, 21, tzinfo=dt.UTC),
        cause="memory",
        reason="batch 128 ran out of memory of 320.0 MiB",
        sizes=(32, 64, 120),
        failed=(FailedSize(batch_size=128, words="bad_alloc", of_memory=True),),
        environment=result.environment,
    )


def test_a_limit_is_kept_beside_results(tmp_path: Path, limit: BatchLimit) -> None:
    """A limit is stored beside results and not read as a result."""
    path = write_sidecar(tmp_path, limit)
    assert path == tmp_path / "local" / "limits" / path.name
    assert path.name.startswith("net-training-cpu-")
    assert load_all(tmp_path) == Loaded({}, ())
    assert tuple(load_sidecars(tmp_path, BatchLimit).records.values()) == (limit,)
    assert limit.largest_that_ran == 120
    assert tuple(load_sidecars(tmp_path / "none", BatchLimit).records.values()) == ()


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("limit_version", 2, "limit_version: Input should be 1"),
        ("sizes", [64, 32], "sizes should ascend"),
        ("failed", [], "should have a size that failed"),
        ("sweep_id", "0" * 16, "the file was edited"),
        ("hardware", "other", "expected hardware 'local' in this folder, got 'other'"),
        ("surplus", 1, "got surplus"),
    ],
)
def test_a_damaged_limit_is_reported(
    tmp_path: Path, limit: BatchLimit, key: str, value: Any, said: str
) -> None:
    """The fault names the damaged file and the reason."""
    path = write_sidecar(tmp_path, limit)
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    loaded = load_sidecars(tmp_path, BatchLimit)
    assert loaded.records == {}
    (fault,) = loaded.faults
    assert fault.path == path
    assert said in fault.message
