"""Which CPUs a trial was pinned to, and what that stands for. Frozen."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from epochcost.results.fields import Count, Record, Whole

Emulated = Literal["a smaller instance of the same family"]


class Pinning(Record):
    """The logical CPUs, by the kernel's numbers, that all threads of the worker ran on.

    ``siblings`` are other hardware threads of the same cores, which the worker left alone;
    ``cores`` and ``numa_nodes`` say how many the CPUs spread over. What the kernel does not tell is
    None, or empty. ``threads`` is how many threads ONNX Runtime computed with. Memory, caches and
    clock stay those of the whole machine.
    """

    emulates: Emulated = "a smaller instance of the same family"
    cpus: Annotated[tuple[Whole, ...], Field(min_length=1)]
    siblings: tuple[Whole, ...] = ()
    cores: Count | None = None
    numa_nodes: Count | None = None
    threads: Count

    @property
    def neighbourhood(self) -> frozenset[int]:
        """The CPUs on which other programs slow the trial: its own and their siblings."""
        return frozenset((*self.cpus, *self.siblings))
