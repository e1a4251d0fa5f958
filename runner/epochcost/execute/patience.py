"""When to measure: waiting while others use the machine, and more rounds until a mean is known.

Both take of one patience, the seconds that a run may take beyond its plan. What disturbs is read
from the system's counters before a round begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from epochcost.measure.host import HostChange, host_change, own_processes, read_host
from epochcost.plan.rounds import Visit
from epochcost.results.records import Result
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

    def wait_for_calm(self, told: Callable[[str, float], None]) -> None:
        """Return when nothing disturbs, or patience ends.

        ``told`` hears what is waited for, and for how many seconds at most.
        """
        while self.left_seconds > 0:
            begun = self._clock()
            reason = disturbance(self._look(), self._cpus)
            if reason is None:
                return
            told(reason, self.left_seconds)
            self._sleep(min(_PAUSE_SECONDS, self.left_seconds))
            self.left_seconds -= self._clock() - begun

    def more_rounds(
        self, rounds: Mapping[str, int], measured: Callable[[], Iterable[Result]]
    ) -> Iterator[Visit]:
        """One more round of the least precise trial, and so on while patience lasts.

        ``measured`` gives the results of all trials as they stand then; ``rounds`` says in how many
        each was planned. Each trial has its turn, so that its rounds are spread over time.
        """
        tried: set[str] = set()
        while self.left_seconds > 0:
            wide = {one.trial.id: one for one in measured() if is_imprecise(one)}
            if not wide:
                return
            tried = set() if wide.keys() <= tried else tried
            found = max((one for key, one in wide.items() if key not in tried), key=_width)
            key, done = found.trial.id, round_count(found.measurement)
            tried.add(key)
            begun, left = self._clock(), self.left_seconds
            yield Visit(found.trial, done + 1, done + 1, max(1, done + 1 - rounds.get(key, 1)))
            # What was waited for meanwhile is taken off already.
            self.left_seconds = min(self.left_seconds, left - (self._clock() - begun))


def is_imprecise(result: Result) -> bool:
    """Whether more rounds could make the mean as precise as the trial asks."""
    demanded = float(result.trial.relative_half_width)
    return bool(result.measurement.samples_seconds) and _width(result) > demanded


def _width(result: Result) -> float:
    return summary_of(result.measurement).relative_half_width
