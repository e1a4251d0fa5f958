"""The engine of SkyPilot: with a made-up program `sky`, and in a slow test with the real one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.fleet.engine import Engine, JobState
from epochcost.fleet.shell import EngineError
from epochcost.fleet.sky import SkyEngine
from target_tariffs import tariff_of

_MACHINE = {"name": "sky", "infra": "aws/us-east-1", "instance_type": "g6.xlarge"}
_CATALOGUE = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,"
    "AvailabilityZone,Arch\ng6.xlarge,L4,1.0,4.0,16.0,\"{'Gpus': [{'Name': 'L4', 'Count': 1, "
    "'MemoryInfo': {'SizeInMiB': 22888}}], 'TotalGpuMemoryInMiB': 22888}\",0.8048,0.3,"
    "us-east-1,us-east-1a,x86_64\n"
)
_VALIDATE = """
import json, sky, sys
(resources,) = sky.Task.from_yaml_config(json.load(sys.stdin)).resources
resources.validate()
print(resources.instance_type, resources.use_spot, resources.get_cost(3600), end=" ")
print(resources.autostop_config.idle_minutes, resources.autostop_config.down, end=" ")
print(resources.autostop_config.wait_for.value)
"""


def _engine(folder: Path = Path(), **machine: object) -> SkyEngine:
    spec = {"id": "l4.spot", "setup_minutes": 15, "limit_minutes": 60}
    return SkyEngine(tariff_of("spot", **spec, engine=_MACHINE | machine), folder, Path())


class _Cloud:
    """The state that the made-up program `sky` stores."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "sky.json"
        state = {"machines": {}, "clouds": ["aws"], "faults": {}, "offers": []}
        self._file.write_text(json.dumps(state))

    @property
    def machines(self) -> dict[str, dict[str, object]]:
        return dict(json.loads(self._file.read_text())["machines"])

    def change(self, **values: object) -> None:
        self._file.write_text(json.dumps(json.loads(self._file.read_text()) | values))


@pytest.fixture(name="calls")
def calls_fixture(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls to the ssh engine, which does nothing; its jobs run."""
    calls: list[str] = []

    def note(name: str) -> Callable[..., JobState]:
        return lambda *_: calls.append(name) or JobState("running")

    monkeypatch.setattr(Engine, "start", note("start"))
    monkeypatch.setattr(Engine, "submit", note("submit"))
    monkeypatch.setattr(Engine, "poll", note("poll"))
    return calls


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Cloud:
    """A cloud behind the made-up program `sky`, which is first on the path."""
    program = tmp_path / "bin" / "sky"
    program.parent.mkdir()
    source = Path(__file__).with_name("sky_program.py")
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{source}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SKY_STATE", str(tmp_path))
    return _Cloud(tmp_path)


def test_start_rents_a_machine_that_ends_itself(
    cloud: _Cloud, calls: list[str], tmp_path: Path
) -> None:
    """A started machine is up, will delete itself in 85 minutes, and is then installed by ssh."""
    _engine(tmp_path).start()
    machine = cloud.machines["epochcost-l4-spot"]
    assert (machine["status"], machine["autostop"], machine["to_down"]) == ("UP", 85, True)
    assert calls == ["start"]


def test_a_machine_that_would_not_end_itself_is_refused(
    cloud: _Cloud, calls: list[str], tmp_path: Path
) -> None:
    """If SkyPilot forgets the autostop, start fails before ssh is used, and says what to run."""
    cloud.change(faults={"launch": "ignored"})
    with pytest.raises(EngineError, match=r"run `sky down epochcost-l4-spot`"):
        _engine(tmp_path).start()
    assert calls == []


def test_each_job_moves_the_end_of_the_machine(
    cloud: _Cloud, calls: list[str], tmp_path: Path
) -> None:
    """Submit sets the autostop anew before it starts the job: its limit and the idle time."""
    engine = _engine(tmp_path)
    engine.start()
    engine.submit("job-1", ("run",))
    assert cloud.machines["epochcost-l4-spot"]["autostop"] == 70
    assert calls == ["start", "submit"]


@pytest.mark.usefixtures("calls")
def test_jobs_of_a_machine_that_the_cloud_took_back_are_lost(
    cloud: _Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unreachable machine is lost if SkyPilot has none; if it is up, the error passes on."""
    engine = _engine(tmp_path)
    engine.start()

    def fail(*_: object) -> JobState:
        raise EngineError("the connection was lost", passing=True)

    monkeypatch.setattr(Engine, "poll", fail)
    with pytest.raises(EngineError, match="connection"):
        engine.poll("job-1")
    cloud.change(machines={})
    assert engine.poll("job-1").state == "lost"


@pytest.mark.usefixtures("calls")
def test_tear_down_is_verified(cloud: _Cloud, tmp_path: Path) -> None:
    """Tear-down may be repeated, and fails with the remedy if the machine is still listed."""
    engine = _engine(tmp_path)
    engine.start()
    cloud.change(faults={"down": "ignored"})
    with pytest.raises(EngineError, match="since it may cost money"):
        engine.tear_down("job-1")
    cloud.change(faults={})
    engine.tear_down("job-1")
    engine.tear_down("job-1")
    assert cloud.machines == {}


def test_check_names_what_is_missing(cloud: _Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cloud without credentials and a machine without SkyPilot are one line each."""
    engine = _engine()
    engine.check()
    assert not engine.tariff.is_quoted
    cloud.change(faults={"gpus": "ignored"})
    assert _engine(accelerators="L4:1").hourly_price() is None
    cloud.change(faults={}, clouds=["gcp"])
    with pytest.raises(EngineError, match=r"l4.spot: SkyPilot has no access to aws: `sky check"):
        _engine().check()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EngineError, match="install skypilot"):
        _engine().check()


def test_a_failed_command_gives_its_last_line_without_colours(
    cloud: _Cloud, tmp_path: Path
) -> None:
    """The message has SkyPilot's reason and no escape codes."""
    cloud.change(faults={"launch": "no capacity in us-east-1"})
    with pytest.raises(EngineError, match=r"l4.spot: no capacity in us-east-1$"):
        _engine(tmp_path).start()


def test_the_quote_is_the_lowest_offer_of_the_instance_type(cloud: _Cloud) -> None:
    """Offers of other instance types do not count; without accelerators there is no quote."""
    offer = {"instance_type": "g6.xlarge", "price": 0.8048, "spot_price": 0.31}
    cloud.change(
        offers=[offer, offer | {"spot_price": 0.3}, {**offer, "instance_type": "g6.2xlarge"}]
    )
    engine = _engine(accelerators="L4:1")
    engine.check()
    assert (engine.tariff.price.amount, engine.tariff.is_quoted) == (Decimal("0.3"), True)
    assert _engine(accelerators="L4:1", instance_type="g6.4xlarge").hourly_price() is None
    assert _engine().hourly_price() is None


@pytest.mark.slow
def test_the_real_skypilot_accepts_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SkyPilot validates the task against a hand-made catalogue, and misses its credentials."""
    program = shutil.which("sky")
    if program is None:
        pytest.skip("needs the program `sky` of skypilot 0.14.1")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SKYPILOT_DISABLE_USAGE_COLLECTION", "1")
    catalogue = tmp_path / ".sky/catalogs/v8"
    for name, text in {
        "aws/vms.csv": _CATALOGUE,
        "aws/images.csv": "Tag,Region,OS,OSVersion,ImageId,CreationDate\n",
        "common/accelerators.csv": "AcceleratorName,Canonical\nL4,L4\n",
    }.items():
        (catalogue / name).parent.mkdir(parents=True, exist_ok=True)
        (catalogue / name).write_text(text)
    good = _engine().task
    assert _validated(program, good) == "g6.xlarge True 0.3 85 True none"
    good["resources"]["instance_type"] = "g6.xxlarge"
    assert "Invalid instance type 'g6.xxlarge'" in _validated(program, good)
    subprocess.run((program, "api", "start", "--host", "127.0.0.1"), check=True)
    try:
        with pytest.raises(EngineError, match="SkyPilot has no access to aws"):
            _engine().check()
        assert _engine(accelerators="L4:1").hourly_price() == Decimal("0.3")
        with pytest.raises(EngineError, match="Cloud access is not set up"):
            _engine(tmp_path).start()
        _engine().tear_down("job-1")
    finally:
        subprocess.run((program, "api", "stop"), check=True)


def _validated(program: str, config: dict[str, object]) -> str:
    """Validate a task by the Python that runs SkyPilot; the last line of its output."""
    python = Path(program).resolve().read_text().splitlines()[0].removeprefix("#!")
    done = subprocess.run(
        (python, "-c", _VALIDATE),
        input=json.dumps(config),
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stdout or done.stderr).strip().splitlines()[-1]
