"""When to measure: waiting while others use the machine, and more rounds until a mean is known.

Both take of one patience, the seconds that a run may take beyond its plan. What disturbs is read
from the system's counters before a round begins; what disturbed the steps all the same, their
result tells by the readings of the machine's pace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from epochcost.execute.assignment import Finished, OnEvent, Outcome, Skipped, Waiting
from epochcost.measure.host import HostChange, host_change, own_processes, read_host
from epochcost.plan.rounds import Visit
from epochcost.results.records import Measurement
from epochcost.results.rounds import round_count, summary_of
from epochcost.results.stability import MOST_OTHERS_SHARE, MOST_STEAL_SHARE

_LOOK_SECONDS = 1.0
_PAUSE_SECONDS = 5.0
Look = Callable[[], HostChange]


def look_at_host() -> HostChange:
    """What other programs and the hypervisor take of this machine, in a second of looking."""
    own = own_processes()
    before = read_host(own)
    time.sleep(_LOOK_SECONDS)
    return host_change(before, read_host(own))


def disturbance(change: HostChange, cpus: int) -> str | None:
    """What takes the CPUs from a trial that would begin now; None where nothing does."""
    others, steal = change.others_cpus, change.steal_share
    if others is not None and others > MOST_OTHERS_SHARE * cpus:
        return f"other programs keep {others:.1f} of {cpus} CPUs busy"
    if steal is not None and steal > MOST_STEAL_SHARE:
        return f"the host takes {steal:.0%} of the CPU time"
    return None


class Patience:
    """The seconds that are left beyond the plan; ``cpus`` is how many the machine has."""

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

    def wait_for_calm(self, on_event: OnEvent) -> None:
        """Return when nothing disturbs, or patience ends; says what it waits for and how long."""
        while self.left_seconds > 0:
            begun = self._clock()
            reason = disturbance(self._look(), self._cpus)
            if reason is None:
                return
            on_event(Waiting(reason, self.left_seconds))
            self._sleep(min(_PAUSE_SECONDS, self.left_seconds))
            self.left_seconds -= self._clock() - begun

    def more_rounds(
        self, rounds: Mapping[str, int], outcomes: Mapping[str, Outcome]
    ) -> Iterator[Visit]:
        """One more round of the least precise trial, and so on while patience lasts.

        ``outcomes`` are those of all trials, which the caller renews after each round; ``rounds``
        is in how many each was planned.
        """
        tried: set[str] = set()
        while self.left_seconds > 0:
            wide = {
                key: one
                for key, one in outcomes.items()
                if isinstance(one, Finished | Skipped) and is_imprecise(one)
            }
            # Each in its turn: rounds of one trial are to be spread over time.
            turn = wide.keys() - tried
            if not turn and wide:
                tried.clear()
                continue
            if not wide:
                return
            key = max(turn, key=lambda one: _width(wide[one].result.measurement))
            tried.add(key)
            done, planned = round_count(wide[key].result.measurement), rounds.get(key, 1)
            begun, left = self._clock(), self.left_seconds
            yield Visit(wide[key].trial, done + 1, done + 1, extra=max(1, done + 1 - planned))
            # What was waited for meanwhile is taken off already.
            self.left_seconds = min(self.left_seconds, left - (self._clock() - begun))


def is_imprecise(outcome: Finished | Skipped) -> bool:
    """Whether more rounds could make the mean as precise as the trial asks."""
    measured = outcome.result.measurement
    demanded = float(outcome.trial.relative_half_width)
    return bool(measured.samples_seconds) and _width(measured) > demanded


def _width(measurement: Measurement) -> float:
    return summary_of(measurement).relative_half_width
