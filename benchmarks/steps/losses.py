"""Check that a contender computes the same losses as epochcost in its first steps."""

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
# Relative to the loss. RMSprop and Adam step by the sign of small gradients, which amplifies
# rounding; a wrong gradient or optimizer differs by some per cent.
TOLERANCE = 2e-3
# Ten and eight bits of the mantissa; libraries keep different operators in fp32.
_COARSER = {"tf32": 5e-3, "fp16": 5e-3, "bf16": 3e-2}


@dataclass(frozen=True)
class Compared:
    """The first losses of a contender, and why they differ; None if they agree.

    ``note`` says how the contender's optimizer differs: then only the first loss, before any
    update, counts.
    """

    losses: tuple[float, ...]
    reason: str | None = None
    note: str | None = None


def compared(
    root: Path, cache: Path, case: Case, pythons: Mapping[str, Path]
) -> dict[str, Compared]:
    """Comparisons by contender, at the smaller batch size, stored next to the case.

    torch.compile is compared by the losses of PyTorch eager, since it runs the same module.
    """
    smaller = dataclasses.replace(case, batch_size=min(case.subject.batch_sizes), threads=2)
    folder = prepared(root, cache, smaller, dropout=False)
    ours = _first(pythons[OURS], OURS, folder, smaller)
    contenders = (name for name in pythons if name not in {OURS, "compile"})
    first_losses = {name: _first(pythons[name], name, folder, smaller) for name in contenders}
    within = _COARSER.get(case.precision, TOLERANCE)
    return {
        OURS: ours,
        **{name: judged(result, ours.losses, within) for name, result in first_losses.items()},
    }


def _first(python: Path, contender: str, folder: Path, case: Case) -> Compared:
    cache_path = folder / f"losses-{contender}.json"
    if not cache_path.is_file():
        try:
            options = ("--losses", str(_COUNT))
            answer = rounds.first_answer(python, contender, folder, case.threads, *options)
        except rounds.StoppedError as error:
            return Compared((), f"did not run: {error}")
        cache_path.write_text(json.dumps(answer), "ascii")
    answer = json.loads(cache_path.read_text("ascii"))
    return Compared(tuple(answer["losses"]), note=answer["note"])


def judged(result: Compared, ours: Sequence[float], tolerance: float = TOLERANCE) -> Compared:
    """The comparison, with a reason if the losses differ from epochcost's."""
    count = 1 if result.note else len(ours)
    if result.reason or alike(result.losses[:count], ours[:count], tolerance):
        return result
    reason = f"expected our losses {list(ours)}, got {list(result.losses)}"
    return dataclasses.replace(result, reason=reason)


def alike(theirs: Sequence[float], ours: Sequence[float], tolerance: float = TOLERANCE) -> bool:
    """Whether the losses agree within the tolerance."""
    return len(theirs) == len(ours) > 0 and all(
        abs(a - b) <= tolerance * abs(b) for a, b in zip(theirs, ours, strict=True)
    )
