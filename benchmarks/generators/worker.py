"""An engine's process: ``python -m generators.worker ENGINE FOLDER``.

It compares nothing: its logits go to a file beside the case. Then each line on standard input asks
for one answer, whose seconds it prints as a line of JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from generators.case import Case, Engine, load

ENGINES = {"ours": "Ours", "genai": "Genai", "eager": "Eager"}


def main(name: str, folder: Path) -> None:
    """Get ready, say so, and answer until nobody asks."""
    # Whatever libraries print goes to standard error.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    case = load(folder)
    # No engine's process loads the libraries of another.
    engine: Engine = getattr(importlib.import_module(f"generators.{name}"), ENGINES[name])(
        case, folder
    )
    np.save(folder / f"{name}.npy", engine.scores())
    print(json.dumps({}), file=out, flush=True)
    for _ in sys.stdin:
        print(json.dumps(_answer(engine, case)), file=out, flush=True)


def _answer(engine: Engine, case: Case) -> dict[str, list[float]]:
    engine.fresh()
    prefill = [_seconds(engine.prefill)]
    return {"prefill": prefill, "decode": [_seconds(engine.decode) for _ in range(case.tokens)]}


def _seconds(work: Callable[[], None]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
