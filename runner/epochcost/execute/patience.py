"""Spend extra time on precision: wait while other programs use CPUs, and add rounds to trials."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from epochcost.measure.host import host_change, own_processes, read_host
from epochcost.plan.rounds import Visit
from epochcost.results.environment import Conditions
from epochcost.results.records import Result
from epochcost.results.rounds import round_count, without_disturbed_rounds
from epochcost.results.stability import MOST_STEAL_SHARE, disturbances_of, is_disturbed
from epochcost.statistics.interval import relative_half_width
from epochcost.units import share

_LOOK_SECONDS = 1.0
_PAUSE_SECONDS = 5.0
Look = Callable[[], Conditions]


def look_at_host() -> Conditions:
    """Measure, during a second, how much CPU time other programs and the hypervisor take."""
    processes = own_processes()
    before = read_host(processes)
    time.sleep(_LOOK_SECONDS)
    return host_change(before, read_host(processes))


def disturbance(change: Conditions, cpus: int) -> str | None:
    """Describe the CPU time that other programs or the hypervisor take; None if it is little."""
    if is_disturbed(change, cpus):
        return f"other programs keep {change.others_cpus:.1f} of {cpus} CPUs busy"
    steal = change.steal_share
    if steal is not None and steal > MOST_STEAL_SHARE:
        return f"the host takes {share(steal)} of the CPU time"
    return None


class Patience:
    """The remaining seconds that a run may take beyond its plan; the machine has ``cpus`` CPUs."""

    def __init__(
        self,
        seconds: float,
        cpus: int,
        *,
        look: Look | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.left_seconds = seconds
        self._cpus, self._look, self._clock, self._sleep = cpus, look or look_at_host, clock, sleep

    def wait_for_calm(self, on_wait: Callable[[str, float], None]) -> None:
        """Wait until CPUs are calm or time is up; ``on_wait`` gets the reason and seconds left."""
        while self.left_seconds > 0:
            begun = self._clock()
            reason = disturbance(self._look(), self._cpus)
            if reason is None:
                return
            on_wait(reason, self.left_seconds)
            self._sleep(min(_PAUSE_SECONDS, self.left_seconds))
            self.left_seconds -= self._clock() - begun

    def more_rounds(
        self, rounds: Mapping[str, int], measured: Callable[[], Iterable[Result]]
    ) -> Iterator[Visit]:
        """Yield additional rounds of imprecise or disturbed trials while extra time is left.

        A trial is disturbed if other programs disturbed all its rounds. Trials take turns of one
        round, the least precise first. ``measured`` returns the current results of all trials, and
        ``rounds`` has the planned number of rounds by trial id.
        """
        tried: set[str] = set()
        while self.left_seconds > 0:
            unsure = {
                result.trial.id: result
                for result in measured()
                if is_imprecise(result) or _is_disturbed(result)
            }
            if not unsure:
                return
            tried = set() if unsure.keys() <= tried else tried
            widest = max((unsure[key] for key in unsure if key not in tried), key=_width)
            key, rounds_done = widest.trial.id, round_count(widest.measurement)
            tried.add(key)
            begun, left_before = self._clock(), self.left_seconds
            yield Visit(
                widest.trial,
                rounds_done + 1,
                rounds_done + 1,
                max(1, rounds_done + 1 - rounds.get(key, 1)),
            )
            # The time of waits during the round is subtracted already.
            self.left_seconds = min(self.left_seconds, left_before - (self._clock() - begun))


def is_imprecise(result: Result) -> bool:
    """Whether a result has samples, and their mean is less precise than the trial demands."""
    demanded = float(result.trial.relative_half_width)
    return bool(result.measurement.samples_seconds) and _width(result) > demanded


def _is_disturbed(result: Result) -> bool:
    causes = disturbances_of(without_disturbed_rounds(result))
    return bool(result.measurement.samples_seconds) and "others" in causes


def _width(result: Result) -> float:
    measurement = without_disturbed_rounds(result).measurement
    return relative_half_width(measurement.samples_seconds, measurement.samples_by_round)
