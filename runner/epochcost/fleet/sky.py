"""Machines that SkyPilot rents on clouds and Kubernetes.

Even a busy machine ends itself at a fixed time after its last job's start, to limit bills.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

from epochcost.fleet.engine import Engine, JobState
from epochcost.fleet.ledger import Tariff
from epochcost.fleet.shell import EngineError, Shell
from epochcost.specs.target import IDLE_MINUTES, Sky
from epochcost.specs.wording import printable

_CALL_SECONDS = 180


class SkyEngine(Engine):
    """A machine that SkyPilot rents; ssh reaches it by its name once it is up."""

    def __init__(self, tariff: Tariff, payload: Path, project: Path) -> None:
        super().__init__(tariff, payload, project)
        assert isinstance(self.target.engine, Sky)
        self._machine, self.name = self.target.engine, str(self.target.host)
        self._spot = tariff.price.plan == "spot"
        self._here = Shell(self.target.id, None)

    @property
    def task(self) -> dict[str, Any]:
        """SkyPilot's task that starts the machine and runs nothing there."""
        minutes = self.target.attempt_seconds // 60
        resources = self._machine.model_dump(exclude={"name"}, exclude_none=True) | {
            "use_spot": self._spot,
            "autostop": {"idle_minutes": minutes, "down": True, "wait_for": "none"},
        }
        return {"name": self.name, "resources": resources}

    def check(self) -> None:
        """Raise `EngineError` if SkyPilot is missing, or has no access to the cloud."""
        cloud = self._machine.infra.partition("/")[0]
        if not any(self._json("check", cloud).values()):
            remedy = f"`sky check {cloud}` says which credentials are missing"
            raise self._here.error(f"SkyPilot has no access to {cloud}: {remedy}")
        self.tariff = self.tariff.quoted(self.hourly_price())

    def hourly_price(self) -> Decimal | None:
        """SkyPilot's price of an hour in dollars; None if its lists do not have the machine."""
        machine = self._machine
        if machine.accelerators is None:
            return None
        offers = self._json("gpus", "list", machine.accelerators, "--infra", machine.infra)
        prices = [
            Decimal(str(price))
            for offer in chain.from_iterable(offers.values())
            for price in [offer["spot_price" if self._spot else "price"]]
            if machine.instance_type in (None, offer["instance_type"])
            if price is not None and math.isfinite(price)
        ]
        return min(prices, default=None)

    def start(self) -> None:
        """Rent the machine, set the time at which it ends itself, and install epochcost on it.

        Raises `EngineError` if SkyPilot does not confirm the time.
        """
        task = self._payload / f"{self.name}.yaml"
        task.write_text(json.dumps(self.task))
        launch = ("launch", "--cluster", self.name, "--yes", "--detach-run", str(task))
        self._sky(*launch, seconds=60 * self.target.setup_minutes)
        self._set_autostop(self.target.attempt_seconds // 60)
        super().start()

    def submit(self, job: str, arguments: Sequence[str]) -> None:
        """Set the machine to end itself soon after the job's time limit, then start the job."""
        self._set_autostop(self.target.limit_minutes + IDLE_MINUTES)
        super().submit(job, arguments)

    def poll(self, job: str) -> JobState:
        """The state of a job; it is lost if the cloud has taken the machine back."""
        try:
            return super().poll(job)
        except EngineError as error:
            if not error.passing or self._cluster_record("--refresh").get("status") == "UP":
                raise
            return JobState("lost", "the cloud ended the machine")

    def tear_down(self, _job: str) -> None:
        """End the machine; raise `EngineError` if SkyPilot still lists it afterwards."""
        if self._cluster_record():
            self._sky("down", self.name, "--yes")
            if self._cluster_record():
                raise self._up("the machine is still up")

    def _set_autostop(self, minutes: int) -> None:
        times = ("--idle-minutes", str(minutes), "--wait-for", "none", "--down", "--yes")
        self._sky("autostop", self.name, *times)
        # `sky autostop` succeeds even if there is no such machine.
        record = self._cluster_record()
        if record.get("autostop") != minutes or record.get("to_down") is not True:
            raise self._up("SkyPilot did not set the time at which the machine ends itself")

    def _up(self, fault: str) -> EngineError:
        return self._here.error(f"{fault}: run `sky down {self.name}`, since it may cost money")

    def _cluster_record(self, *options: str) -> dict[str, Any]:
        # This call also writes ssh's configuration of the machine.
        records = self._json("status", self.name, *options)
        return dict(records[0]) if records else {}

    def _json(self, *arguments: str) -> Any:
        output = self._sky(*arguments, "--output", "json")
        # Messages such as "Cluster(s) not found" precede the JSON.
        starts = re.search(r"^[\[{]", output, re.MULTILINE)
        try:
            return json.loads(output[starts.start() :]) if starts else {}
        except ValueError:
            message = f"expected JSON of `sky {arguments[0]}`, got {printable(output[:80])}"
            raise self._here.error(message) from None

    def _sky(self, *arguments: str, seconds: float = _CALL_SECONDS) -> str:
        return self._here.call(("sky", *arguments), seconds=seconds)
