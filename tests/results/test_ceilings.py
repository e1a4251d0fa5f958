"""Peak rates of a machine: rates from raw times, one file for each host, and faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epochcost.results.ceilings import Ceilings, find_ceilings
from epochcost.results.environment import Environment
from epochcost.results.records import Result
from epochcost.results.store import Loaded, load_all, load_sidecars, write_sidecar
from kept_ceilings import make_ceilings

MakeResult = Callable[..., Result]


@pytest.fixture(name="environment")
def environment_fixture(make_result: MakeResult) -> Environment:
    """The environment of a made-up result."""
    return make_result().environment


def test_rates_follow_from_the_times(environment: Environment) -> None:
    """Rates have a median, a low and a high end. The peak is of the fastest number of threads."""
    one, two = make_ceilings(environment).ceilings
    assert one.flops.median == pytest.approx(1e11)
    assert one.flops.low == pytest.approx(1e11 / 1.05)
    assert one.flops.high == pytest.approx(1e11 / 0.98)
    assert two.copy_bytes.median == pytest.approx(1.2e10)


def test_ceilings_are_kept_beside_results(tmp_path: Path, environment: Environment) -> None:
    """Ceilings have a file for each host and GPU, and are not read as results."""
    kept = make_ceilings(environment)
    path = write_sidecar(tmp_path, kept)
    assert path == tmp_path / "local" / "ceilings" / "cpu-f00d.json"
    assert load_all(tmp_path) == Loaded({}, ())
    assert load_sidecars(tmp_path, Ceilings).records == {path: kept}
    assert find_ceilings(tmp_path, "local", "cpu", environment) == kept
    other = environment.model_copy(update={"runtime": "onnxruntime==1.20.1"})
    assert find_ceilings(tmp_path, "local", "cpu", other) is None
    assert find_ceilings(tmp_path, "local", "cuda", environment) is None
    second = make_ceilings(environment, provider="cuda", device=1)
    assert write_sidecar(tmp_path, second).name == "cuda1-f00d.json"
    assert find_ceilings(tmp_path, "local", "cuda", environment, 1) == second
    assert find_ceilings(tmp_path, "local", "cuda", environment, 0) is None
    assert find_ceilings(tmp_path / "none", "local", "cpu", environment) is None


@pytest.mark.parametrize("former", [{"ceilings_version": 1}, {"anchors": [{"work": "copies"}]}])
def test_files_of_earlier_versions_are_read(
    tmp_path: Path, environment: Environment, former: dict[str, Any]
) -> None:
    """Files of earlier versions are read, and their anchors are ignored."""
    path = write_sidecar(tmp_path, make_ceilings(environment))
    path.write_text(json.dumps(json.loads(path.read_text()) | former))
    kept = load_sidecars(tmp_path, Ceilings).records[path]
    assert kept.ceilings == make_ceilings(environment).ceilings


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ceilings_version": 5}, "ceilings_version: Input should be less than or equal to 4"),
        ({"ceilings": []}, "ceilings of a CPU should not be empty"),
    ],
)
def test_damaged_ceilings_are_reported(
    tmp_path: Path, environment: Environment, change: dict[str, Any], said: str
) -> None:
    """The fault names the damaged file and the reason."""
    path = write_sidecar(tmp_path, make_ceilings(environment))
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    loaded = load_sidecars(tmp_path, Ceilings)
    assert loaded.records == {}
    (fault,) = loaded.faults
    assert fault.path == path
    assert said in fault.message
