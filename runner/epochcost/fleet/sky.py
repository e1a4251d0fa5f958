"""Machines that SkyPilot rents: clouds and Kubernetes.

SkyPilot's program `sky` starts a machine, gives ssh a name for it, and ends it; the rest is the
work of the ssh engine. A machine ends itself at a fixed time after the start of its last job,
whether it is busy or not, so a killed launcher costs at most that time.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from epochcost.fleet.engine import JobState
from epochcost.fleet.shell import EngineError, Shell
from epochcost.fleet.ssh import SshEngine
from epochcost.specs.target import IDLE_MINUTES, Sky, Ssh, Target
from epochcost.specs.wording import printable

_CALL_SECONDS = 180


def task(target: Target, machine: Sky, name: str) -> dict[str, Any]:
    """SkyPilot's task that starts the machine of a target and runs nothing there."""
    minutes = target.attempt_seconds // 60
    resources = {
        "infra": machine.infra,
        "instance_type": machine.instance_type,
        "accelerators": machine.accelerators,
        "use_spot": machine.spot,
        "autostop": {"idle_minutes": minutes, "down": True, "wait_for": "none"},
    }
    chosen = {key: value for key, value in resources.items() if value is not None}
    return {"name": name, "resources": chosen}


class SkyEngine(SshEngine):
    """A machine that SkyPilot rents; ssh reaches it by its name once it is up."""

    def __init__(self, target: Target, payload: Path, project: Path) -> None:
        assert isinstance(target.engine, Sky)
        self._machine = target.engine
        self.name = "epochcost-" + re.sub("[^a-z0-9]+", "-", target.id.lower())
        host = Ssh(name="ssh", host=self.name)
        super().__init__(target.model_copy(update={"engine": host}), payload, project)
        self._task = payload / f"{self.name}.yaml"
        self._here = Shell(target.id, None)

    def check(self) -> None:
        """Raise `EngineError` if SkyPilot is missing, or has no access to the cloud."""
        cloud = self._machine.infra.partition("/")[0]
        if not any(self._json("check", cloud).values()):
            raise self._here.error(
                f"SkyPilot has no access to {cloud}: `sky check {cloud}` says which credentials "
                "are missing"
            )

    def hourly_price(self) -> Decimal | None:
        """SkyPilot's price of an hour in dollars; None if its lists do not have the machine."""
        machine = self._machine
        if machine.accelerators is None:
            return None
        offers = self._json("gpus", "list", machine.accelerators, "--infra", machine.infra)
        key = "spot_price" if machine.spot else "price"
        prices = [
            Decimal(str(offer[key]))
            for group in offers.values()
            for offer in group
            if machine.instance_type in (None, offer["instance_type"])
            if offer[key] is not None and math.isfinite(offer[key])
        ]
        return min(prices, default=None)

    def start(self) -> None:
        """Rent the machine, verify that it will end itself, and install this checkout there."""
        self._task.write_text(json.dumps(task(self.target, self._machine, self.name)))
        launch = ("launch", "--cluster", self.name, "--yes", "--detach-run", str(self._task))
        self._sky(*launch, seconds=60 * self.target.setup_minutes)
        self._end_in_time(self.target.attempt_seconds // 60)
        super().start()

    def submit(self, job: str, arguments: Sequence[str]) -> None:
        """Start a job, and let the machine end itself after the job's limit."""
        self._end_in_time(self.target.limit_minutes + IDLE_MINUTES)
        super().submit(job, arguments)

    def poll(self, job: str) -> JobState:
        """The state of a job; it is lost if the cloud has taken the machine back."""
        try:
            return super().poll(job)
        except EngineError as error:
            if not error.passing or self._record("--refresh").get("status") == "UP":
                raise
            return JobState("lost", "the cloud ended the machine")

    def tear_down(self) -> None:
        """End the machine; raise `EngineError` if SkyPilot still lists it afterwards."""
        if self._record():
            self._sky("down", self.name, "--yes")
            if self._record():
                raise self._up("the machine is still up")

    def _end_in_time(self, minutes: int) -> None:
        """Set the time after which the machine ends itself, and verify it.

        `sky autostop` succeeds even if there is no such machine.
        """
        times = ("--idle-minutes", str(minutes), "--wait-for", "none", "--down", "--yes")
        self._sky("autostop", self.name, *times)
        record = self._record()
        if record.get("autostop") != minutes or record.get("to_down") is not True:
            raise self._up("SkyPilot did not set the time at which the machine ends itself")

    def _up(self, fault: str) -> EngineError:
        return self._here.error(f"{fault}: run `sky down {self.name}`, since it may cost money")

    def _record(self, *options: str) -> dict[str, Any]:
        """SkyPilot's record of the machine; empty if there is none."""
        # This call also writes ssh's configuration of the machine.
        records = self._json("status", self.name, *options)
        return dict(records[0]) if records else {}

    def _json(self, *arguments: str) -> Any:
        output = self._sky(*arguments, "--output", "json")
        # Messages such as "Cluster(s) not found" precede the JSON.
        starts = re.search(r"^[\[{]", output, re.MULTILINE)
        try:
            return json.loads(output[starts.start() :]) if starts else []
        except ValueError:
            message = f"expected JSON of `sky {arguments[0]}`, got {printable(output[:80])}"
            raise self._here.error(message) from None

    def _sky(self, *arguments: str, seconds: float = _CALL_SECONDS) -> str:
        return self._here.call(("sky", *arguments), seconds=seconds)
