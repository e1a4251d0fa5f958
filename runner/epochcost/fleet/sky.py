"""Machines that SkyPilot rents: clouds and Kubernetes.

SkyPilot's program `sky` starts a machine, gives ssh a name for it, and ends it. The rest is the
work of the ssh engine. A machine ends itself at a fixed time after the last command was started,
whether it is busy or not, so a killed launcher costs at most that time.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from epochcost.errors import InputError
from epochcost.fleet.engine import Command, Engine, EngineError, JobState
from epochcost.fleet.ssh import SshEngine
from epochcost.specs.target import Sky, Ssh, Target
from epochcost.specs.wording import printable

_CALL_SECONDS = 180
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def cluster_name(target: Target) -> str:
    """SkyPilot's name of a target's machine, which ssh knows, too."""
    return "epochcost-" + re.sub("[^a-z0-9]+", "-", target.id.lower())


def task(target: Target, machine: Sky) -> dict[str, Any]:
    """SkyPilot's task that starts the machine of a target and runs nothing there."""
    ends = {"idle_minutes": _minutes_to_end(target, machine), "down": True, "wait_for": "none"}
    resources = {
        "infra": machine.infra,
        "instance_type": machine.instance_type,
        "accelerators": machine.accelerators,
        "use_spot": machine.spot,
        "autostop": ends,
    }
    return {
        "name": cluster_name(target),
        "resources": {key: value for key, value in resources.items() if value is not None},
    }


def _minutes_to_end(target: Target, machine: Sky) -> int:
    return target.setup_minutes + target.limit_minutes + machine.idle_minutes


class SkyEngine:
    """A machine that SkyPilot rents; ssh reaches it by `cluster_name` once it is up."""

    def __init__(
        self, target: Target, payload: Path, project: Path, ssh: Callable[..., Engine] = SshEngine
    ) -> None:
        if not isinstance(target.engine, Sky):
            raise InputError(f"target {target.id}: expected the engine sky")
        self.target, self.machine = target, target.engine
        host = Ssh(name="ssh", host=cluster_name(target))
        self.ssh = ssh(target.model_copy(update={"engine": host}), payload, project)

    def check(self) -> None:
        """Raise `EngineError` if SkyPilot is missing, or has no access to the cloud."""
        if shutil.which("sky") is None:
            raise self._error(
                "expected SkyPilot's program `sky` on this machine: install skypilot 0.14 for your "
                "cloud (see docs/how-to/measure-on-clouds.md)"
            )
        cloud = self.machine.infra.partition("/")[0]
        workspaces = self._json("check", cloud)
        if not any(workspaces.values()):
            raise self._error(
                f"SkyPilot has no access to {cloud}: `sky check {cloud}` says which credentials "
                "are missing"
            )

    def hourly_price(self) -> Decimal | None:
        """SkyPilot's price of an hour in dollars; None if its lists do not have the machine."""
        if self.machine.accelerators is None:
            return None
        offers = self._json(
            "gpus", "list", self.machine.accelerators, "--infra", self.machine.infra
        )
        key = "spot_price" if self.machine.spot else "price"
        prices = [
            Decimal(str(offer[key]))
            for offer in (offer for group in offers.values() for offer in group)
            if self.machine.instance_type in (None, offer["instance_type"])
            if offer[key] is not None and math.isfinite(offer[key])
        ]
        return min(prices, default=None)

    def start(self) -> None:
        """Rent the machine, verify that it will end itself, and install this checkout there."""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            json.dump(task(self.target, self.machine), file)
            file.flush()
            arguments = ("--cluster", cluster_name(self.target), "--yes", "--detach-run")
            self._sky("launch", *arguments, file.name, seconds=60 * self.target.setup_minutes)
        self._end_in_time()
        self.ssh.start()

    def submit(self, command: Command) -> str:
        """Start a command, and let the machine end itself after the command's limit."""
        self._end_in_time()
        return self.ssh.submit(command)

    def poll(self, jobs: Sequence[str]) -> tuple[JobState, ...]:
        """The states of the jobs; all are lost if the cloud has taken the machine back."""
        try:
            return self.ssh.poll(jobs)
        except EngineError as error:
            if not error.passing or self._status(refresh=True) == "UP":
                raise
            return (JobState("lost", "the cloud ended the machine"),) * len(jobs)

    def logs(self, job: str) -> str:
        """The last lines that the job printed."""
        return self.ssh.logs(job)

    def cancel(self, job: str) -> None:
        """End a job; no error if it has ended."""
        self.ssh.cancel(job)

    def collect(self, results: Path) -> None:
        """Copy the result files; call it before `tear_down`, which deletes the disk."""
        self.ssh.collect(results)

    def tear_down(self) -> None:
        """End the machine; raise `EngineError` if SkyPilot still lists it afterwards."""
        name = cluster_name(self.target)
        if self._status() is None:
            return
        self._sky("down", name, "--yes")
        if self._status() is not None:
            raise self._error(f"the machine may still cost money: run `sky down {name}`")

    def _end_in_time(self) -> None:
        """Set the time after which the machine ends itself, and verify it.

        `sky autostop` succeeds even if there is no such machine.
        """
        minutes, name = _minutes_to_end(self.target, self.machine), cluster_name(self.target)
        self._sky(
            *("autostop", name, "--idle-minutes", str(minutes)),
            *("--wait-for", "none", "--down", "--yes"),
        )
        record = self._record()
        if record.get("autostop") != minutes or record.get("to_down") is not True:
            raise self._error(
                f"SkyPilot did not set the time at which the machine ends itself: run `sky down "
                f"{name}`, since it may cost money"
            )

    def _status(self, *, refresh: bool = False) -> str | None:
        """The status of the machine by SkyPilot; None if there is none."""
        record = self._record(*(("--refresh",) if refresh else ()))
        return str(record["status"]) if record else None

    def _record(self, *options: str) -> dict[str, Any]:
        # This call also writes ssh's configuration of the machine.
        records = self._json("status", cluster_name(self.target), *options)
        return dict(records[0]) if records else {}

    def _json(self, *arguments: str) -> Any:
        output = self._sky(*arguments, "--output", "json")
        # Messages such as "Cluster(s) not found" precede the JSON.
        starts = re.search(r"^[\[{]", output, re.MULTILINE)
        try:
            return json.loads(output[starts.start() :]) if starts else []
        except ValueError:
            raise self._error(
                f"expected JSON of `sky {arguments[0]}`, got {printable(output[:80])}"
            ) from None

    def _sky(self, *arguments: str, seconds: float = _CALL_SECONDS) -> str:
        try:
            done = subprocess.run(
                ("sky", *arguments),
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except (FileNotFoundError, subprocess.TimeoutExpired) as error:
            reason = "is missing" if isinstance(error, FileNotFoundError) else "does not answer"
            raise self._error(f"the program `sky` {reason}", passing=True) from None
        if done.returncode:
            lines = _COLOUR.sub("", done.stderr or done.stdout).strip().splitlines() or [
                "no reason"
            ]
            raise self._error(f"`sky {arguments[0]}` failed: {printable(lines[-1])}")
        return _COLOUR.sub("", done.stdout)

    def _error(self, sentence: str, *, passing: bool = False) -> EngineError:
        return EngineError(f"target {self.target.id}: {sentence}", passing=passing)
