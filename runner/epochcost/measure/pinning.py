"""Pin a worker to a part of the hardware threads (vCPUs), to emulate a smaller instance."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from epochcost.errors import CapabilityError
from epochcost.measure.cpu import SYSTEM, cpu_quota, parse_cpu_list, read_text, usable_cpus
from epochcost.results.records import Pinning

NO_PINNING = "this system cannot pin a process to CPUs (no sched_setaffinity)"


@dataclass(frozen=True)
class Topology:
    """Maps each CPU to its NUMA node, and to all hardware threads of its core (itself included)."""

    threads: Mapping[int, frozenset[int]]
    nodes: Mapping[int, int]

    def covers(self, cpus: Collection[int]) -> bool:
        """Whether ``threads`` has an entry for each of ``cpus``."""
        return all(cpu in self.threads for cpu in cpus)


def why_not_pinned() -> str | None:
    """The reason why this platform cannot pin a process to CPUs; None if pinning works."""
    return None if hasattr(os, "sched_setaffinity") else NO_PINNING


def pinnable_cpus() -> int:
    """Number of CPUs that a process can use: those of its affinity, or the CPU quota if less."""
    quota = cpu_quota()
    return usable_cpus() if quota is None else min(usable_cpus(), max(1, int(quota)))


def choose_pinning(count: int, threads: int) -> Pinning:
    """Choose CPUs for a worker; raises CapabilityError if pinning fails or CPUs are too few."""
    reason = why_not_pinned()
    if reason is not None:
        raise CapabilityError(f"vcpus: expected {count} CPUs for a trial; {reason}")
    allowed = os.sched_getaffinity(0)
    if count > len(allowed):
        raise CapabilityError(
            f"vcpus: expected {count} CPUs for a trial; this process may use {len(allowed)}"
        )
    topology = read_topology(allowed)
    cpus = choose_cpus(count, allowed, topology)
    return _described(cpus, threads, topology)


def _described(cpus: tuple[int, ...], threads: int, topology: Topology) -> Pinning:
    is_known = topology.covers(cpus)
    cores = {topology.threads[cpu] for cpu in cpus} if is_known else set[frozenset[int]]()
    nodes = {topology.nodes[cpu] for cpu in cpus if cpu in topology.nodes}
    return Pinning(
        cpus=cpus,
        siblings=tuple(sorted(frozenset().union(*cores) - set(cpus))),
        cores=len(cores) or None,
        numa_nodes=len(nodes) or None,
        threads=threads,
    )


def choose_cpus(count: int, allowed: Collection[int], topology: Topology) -> tuple[int, ...]:
    """Choose CPUs like those of a smaller instance: whole cores on the fewest NUMA nodes.

    The result ascends. If the topology is unknown, it has the CPUs with the lowest numbers.
    """
    if not topology.covers(allowed):
        return tuple(sorted(allowed)[:count])
    sizes = Counter(topology.nodes.get(cpu, 0) for cpu in allowed)

    def rank(cpu: int) -> tuple[object, ...]:
        node, core = topology.nodes.get(cpu, 0), topology.threads[cpu] & set(allowed)
        holds_all = sizes[node] >= count
        return (not holds_all, 0 if holds_all else -sizes[node], node, -len(core), min(core), cpu)

    return tuple(sorted(sorted(allowed, key=rank)[:count]))


def read_topology(cpus: Collection[int], system: Path = SYSTEM) -> Topology:
    """Read the topology of ``cpus`` from the kernel's files (admin-guide, cputopology).

    Before Linux 5.3, the list of a core's threads was only in ``thread_siblings_list``.
    """
    threads = {cpu: siblings for cpu in cpus if (siblings := _threads_of(cpu, system))}
    nodes = {
        cpu: int(folder.name.removeprefix("node"))
        for folder in system.glob("node/node[0-9]*")
        for cpu in parse_cpu_list(read_text(folder / "cpulist"))
    }
    return Topology(threads, nodes)


def _threads_of(cpu: int, system: Path) -> frozenset[int]:
    folder = system / f"cpu/cpu{cpu}/topology"
    text = read_text(folder / "core_cpus_list") or read_text(folder / "thread_siblings_list")
    siblings = parse_cpu_list(text)
    return siblings if cpu in siblings else frozenset()


@contextlib.contextmanager
def pin_children(pinning: Pinning | None) -> Iterator[None]:
    """In this context, pin all processes that this thread starts, including their threads.

    Raises CapabilityError if this process may no longer use the CPUs of ``pinning``.
    """
    if pinning is None:
        yield
        return
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, pinning.cpus)
    except OSError as error:
        raise _pinning_lost(pinning, str(error.strerror)) from error
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def require_pinned(pinning: Pinning | None) -> None:
    """Raise CapabilityError unless this process may use exactly the CPUs of ``pinning``, if any."""
    if pinning is not None and os.sched_getaffinity(0) != set(pinning.cpus):
        raise _pinning_lost(pinning, f"CPUs {_cpu_list(os.sched_getaffinity(0))}")


def _pinning_lost(pinning: Pinning, got: str) -> CapabilityError:
    expected = f"expected a worker on CPUs {_cpu_list(pinning.cpus)}"
    return CapabilityError(f"vcpus: {expected}, got {got}: has a control group changed?")


def _cpu_list(cpus: Collection[int]) -> str:
    return ", ".join(map(str, sorted(cpus)))
