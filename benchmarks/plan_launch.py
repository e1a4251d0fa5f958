"""Seconds to plan the studies that measure at hand on every machine of the catalogue.

    python benchmarks/plan_launch.py

Prints the number of cells (trials and sweeps on a machine) and the CPU time of a plan, once with an
empty cache of the memory that graphs need and once with this memory in the cache.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from epochcost.execute.graph_facts import GraphFacts
from epochcost.execute.planning import plan_elsewhere
from epochcost.plan.cell import cells_of
from epochcost.plan.make import RunRequest
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import AT_HAND

ROOT = Path(__file__).parents[1]


def plan_all(catalogue: Catalogue, studies: tuple[str, ...]) -> tuple[int, float]:
    """The number of cells on all machines, and the CPU time of the plan in seconds."""
    start, cells, facts = time.process_time(), 0, GraphFacts(catalogue)
    for machine in catalogue.hardware.values():
        request = RunRequest(studies=studies, providers=(machine.device,), hardware=machine.id)
        kind = (machine.id, machine.device, "")
        cells += len(list(cells_of(plan_elsewhere(facts, request), kind)))
    return cells, time.process_time() - start


def main() -> None:
    """Plan twice, with an empty cache and with a filled one."""
    catalogue = load_catalogue(ROOT)
    studies = tuple(each.id for each in catalogue.studies.values() if AT_HAND in each.hardware)
    print(f"{len(studies)} studies on {len(catalogue.hardware)} machines")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for cache in ("empty", "filled"):
            cells, seconds = plan_all(catalogue, studies)
            print(f"{cells:,} cells, cache {cache}: {seconds:.2f} s")


if __name__ == "__main__":
    main()
