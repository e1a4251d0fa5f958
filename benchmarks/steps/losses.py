"""Whether a contender computes what we compute: its first losses, without dropout, against ours."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steps import rounds
from steps.cases import OURS, Case
from steps.prepared import prepared

# The second loss follows one update, so that optimizers are compared too.
_COUNT = 2
# Of the loss. A step of RMSprop or Adam is of the gradient's sign where it is about zero, so that
# rounding grows; a wrong gradient or optimizer shows at some per cent.
TOLERANCE = 2e-3
# Ten and eight bits of the mantissa, and each library leaves other operators in fp32.
_COARSER = {"tf32": 5e-3, "bf16": 3e-2}


@dataclass(frozen=True)
class Compared:
    """The first losses of a contender, and why they are not ours; None where they are.

    ``note`` says how its optimizer differs: then only the first loss, before any update, counts.
    """

    losses: tuple[float, ...]
    reason: str | None = None
    note: str | None = None


def compared(
    root: Path, cache: Path, case: Case, pythons: Mapping[str, Path], start: float
) -> dict[str, Compared]:
    """By contender, at the smaller batch size; what was found once is kept beside the case.

    torch.compile runs the module whose losses PyTorch eager gave.
    """
    smaller = dataclasses.replace(case, batch_size=min(case.subject.batch_sizes), threads=2)
    folder = prepared(root, cache, smaller, dropout=False)
    ours = _first(pythons[OURS], OURS, folder, smaller, start)
    others = (name for name in pythons if name not in {OURS, "compile"})
    found = {name: _first(pythons[name], name, folder, smaller, start) for name in others}
    within = _COARSER.get(case.precision, TOLERANCE)
    return {OURS: ours, **{name: judged(one, ours.losses, within) for name, one in found.items()}}


def _first(python: Path, contender: str, folder: Path, case: Case, start: float) -> Compared:
    kept = folder / f"losses-{contender}.json"
    if not kept.is_file():
        try:
            said = rounds.first_losses(python, contender, folder, case.threads, _COUNT, start)
        except rounds.StoppedError as error:
            return Compared((), f"did not run: {error}")
        kept.write_text(json.dumps(said), "ascii")
    said = json.loads(kept.read_text("ascii"))
    return Compared(tuple(said["losses"]), note=said["note"])


def judged(one: Compared, ours: Sequence[float], tolerance: float = TOLERANCE) -> Compared:
    """With the reason where its losses are not ours."""
    count = 1 if one.note else len(ours)
    if one.reason or alike(one.losses[:count], ours[:count], tolerance):
        return one
    reason = f"expected our losses {list(ours)}, got {list(one.losses)}"
    return dataclasses.replace(one, reason=reason)


def alike(theirs: Sequence[float], ours: Sequence[float], tolerance: float = TOLERANCE) -> bool:
    """Whether each loss is the other's within the tolerance."""
    return len(theirs) == len(ours) > 0 and all(
        abs(a - b) <= tolerance * abs(b) for a, b in zip(theirs, ours, strict=True)
    )
