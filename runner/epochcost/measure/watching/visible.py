"""The GPUs that CUDA shows to a process, in its own numbering, with what NVML calls them.

CUDA counts what CUDA_VISIBLE_DEVICES leaves, from 0; NVML counts every board. Both go by the PCI
bus (``session.load_cuda_libraries`` sees to that), so the variable is all that lies between them.
Its rules are those of the CUDA programming guide, "CUDA environment variables".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from epochcost.measure.watching.nvml import Handle, Library, answer, text

VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class VisibleGpu:
    """A GPU that CUDA shows; ``number`` is its board's on the bus.

    ``handle`` is of what a process gets: a board, or a part of one (MIG). ``board`` is what draws
    power and has clocks.
    """

    number: int
    handle: Handle
    board: Handle

    @property
    def partial(self) -> bool:
        """Whether other processes may be on the same board."""
        return self.handle is not self.board


def visible_gpus(
    library: Library, boards: Sequence[Handle], shown: str | None
) -> tuple[VisibleGpu, ...]:
    """The GPUs in the order in which CUDA numbers them; ``shown`` is the variable, None: not set.

    The first entry that names nothing hides itself and all after it; an entry that is there twice
    hides everything.
    """
    if shown is None:
        return tuple(VisibleGpu(number, board, board) for number, board in enumerate(boards))
    found: list[VisibleGpu] = []
    for entry in shown.split(","):
        gpu = _named(library, boards, entry.strip())
        if gpu is None:
            break
        if any(gpu.handle is other.handle for other in found):
            return ()
        found.append(gpu)
    return tuple(found)


def _named(library: Library, boards: Sequence[Handle], entry: str) -> VisibleGpu | None:
    """What an entry names: a number, the begin of a UUID, or a part's UUID."""
    if entry.isdecimal():
        number = int(entry)
        return _board(boards, number) if number < len(boards) else None
    if entry.startswith("MIG-"):
        return _part(library, boards, entry)
    known = [_uuid(library, board) for board in boards]
    matches = [number for number, uuid in enumerate(known) if entry and uuid.startswith(entry)]
    return _board(boards, matches[0]) if len(matches) == 1 else None


def _board(boards: Sequence[Handle], number: int) -> VisibleGpu:
    return VisibleGpu(number, boards[number], boards[number])


def _part(library: Library, boards: Sequence[Handle], entry: str) -> VisibleGpu | None:
    part = answer(library, library.nvmlDeviceGetHandleByUUID, entry)
    if part is None:
        return None
    parent = answer(library, library.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, part)
    known = [_uuid(library, board) for board in boards]
    uuid = "" if parent is None else _uuid(library, parent)
    if not uuid or uuid not in known:
        return None
    number = known.index(uuid)
    return VisibleGpu(number, part, boards[number])


def _uuid(library: Library, handle: Handle) -> str:
    """Empty where the driver does not tell."""
    return text(answer(library, library.nvmlDeviceGetUUID, handle)) or ""
