"""Work on many things in processes beside this one, whose results are files."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Beside:
    """Processes at work; none where none could be started."""

    children: tuple[int, ...] = ()

    def wait(self) -> None:
        """Until all have ended, also those that were waited for before."""
        for child in self.children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


def begun_beside(work: Callable[[ItemT], object], items: Sequence[ItemT], most: int) -> Beside:
    """Begin the work on all items in at most so many processes.

    Only what the work writes to files remains. A process that fails leaves its items undone, and
    where no process can be forked all are: callers do what they then miss themselves, and meet the
    error. Forked, not spawned: the items need no pickling, and memory is shared.
    """
    if sys.platform != "linux":
        return Beside()
    count = min(most, len(os.sched_getaffinity(0)), len(items))
    return Beside(tuple(_forked(work, items[at::count]) for at in range(count)))


def _forked(work: Callable[[ItemT], object], items: Sequence[ItemT]) -> int:
    child = os.fork()
    if child:
        return child
    _hush()
    # The parent's objects stay where they are: a search for cycles would copy all of them.
    gc.freeze()
    try:
        for item in items:
            work(item)
    finally:
        # Nothing of the parent is to be flushed, closed or caught here.
        os._exit(0)


def _hush() -> None:
    """Show no message of this process; work that listens for messages itself still hears them."""
    for logger in (logging.root, *map(logging.getLogger, logging.root.manager.loggerDict)):
        logger.handlers.clear()
    logging.root.addHandler(logging.NullHandler())
