"""How far predictions of rates are off on machines and models that were left out, and how sure.

    python benchmarks/prediction.py --leave-out accelerator --anchors 0 1 3
    python benchmarks/prediction.py --observations my.csv --hardware mine.toml --json

    python benchmarks/prediction.py --cpus --leave-out machine

Reads tables of the form of specs/observations, and the devices of specs/devices; ``--hardware``
adds those that hardware specs name and describe. Left out is every row of an accelerator (one chip
and memory size under every spelling, form and count), of a generation, or of a model. A row's
error is max(p/t, t/p) - 1 of time, averaged over 20 seeded choices of anchors: rows of other models
on the machine, or of the model on another machine where models are left out; a refusal counts as an
error. Beside it the roofline: rate as √(peak · bandwidth) with a constant a model of the same rows.
``--cpus`` scores what is known of CPUs: an accelerator is a make, a machine so many vCPUs of it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from epochcost.analysis.inputs import read_inputs
from epochcost.analysis.predicted import known_of_cpus
from epochcost.analysis.prediction_trust import hourly_prices
from epochcost.errors import EpochcostError
from epochcost.predict.design import Devices, Placed
from epochcost.predict.process import OF_CPUS, PROFILES, Scales
from epochcost.predict.rates import read_profiles, read_rates, without_repeats
from epochcost.predict.regret import regret
from epochcost.predict.screening import doubted_rows
from epochcost.predict.tables import described, placed
from epochcost.predict.trust import LEFT, Score, score
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[1]


def tables(
    catalogue: Catalogue, files: list[Path], task: str, devices: Devices
) -> list[list[Placed]]:
    """The rows of each file, or of each table of the project, that name a device that is known."""
    folder = ROOT / "specs" / "observations"
    profiles = {one.table: one.profiles for one in catalogue.observations.values()}
    found = []
    for file in files or [folder / one.table for one in catalogue.observations.values()]:
        counted = profiles.get(file.name)
        rates = [one for one in read_rates(file) if task in ("", one.task)]
        known = read_profiles(folder / counted) if counted else {}
        rows, unknown = placed(without_repeats(rates), devices, known)
        names = ", ".join(sorted(unknown)[:5])
        if unknown:
            print(f"{file.name}: no device is called {names}", file=sys.stderr)
        if rows:
            found.append(rows)
    return found


def of_cpus(catalogue: Catalogue, left: str) -> tuple[list[list[Placed]], Devices]:
    """The rates of CPUs; where machines are left out, first those of each source with several."""
    inputs = read_inputs(catalogue, [ROOT / "docs" / "data" / "results"], ROOT / "docs")
    rows, devices = known_of_cpus(inputs)
    sources: dict[str, list[Placed]] = defaultdict(list)
    for one in rows:
        sources[one.rate.path].append(one)
    several = [some for some in sources.values() if len({one.device.id for one in some}) > 1]
    everything = [replace(one, rate=replace(one.rate, path="all")) for one in rows]
    return [*(several if left == "machine" else ()), everything], devices


def line(name: str, left: str, anchors: int, found: Score) -> str:
    """One line for people."""
    generations = ", ".join(f"{k} {v:.2f}" for k, v in found.coverage_by_generation.items())
    return (
        f"{name:28} {left:12} {anchors} anchors: {found.rows:5} rows, {found.refused} refused, "
        f"error {found.median_percent:.1f} / {found.p90_percent:.1f} %, roofline "
        f"{found.roofline_median_percent:.1f} / {found.roofline_p90_percent:.1f} %, coverage "
        f"{found.coverage:.3f} ({generations}), half-width x{found.half_width:.2f}"
    )


def main() -> None:
    """Score every table, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--observations", nargs="+", type=Path, default=[])
    parser.add_argument("--hardware", nargs="+", type=Path, default=[])
    parser.add_argument("--leave-out", nargs="?", choices=LEFT, default=LEFT[0], const=LEFT[0])
    parser.add_argument("--anchors", nargs="+", type=int, default=[0])
    parser.add_argument("--task", default="", help="only rows of this task, such as Offline")
    parser.add_argument("--doubts", action="store_true", help="list rows that cannot be right")
    parser.add_argument("--regret", action="store_true", help="what following predictions costs")
    parser.add_argument("--cpus", action="store_true", help="rates of CPUs, not of tables")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    try:
        catalogue = load_catalogue(ROOT)
        devices = Devices([*catalogue.devices.values(), *described(asked.hardware)])
        scales: Sequence[Scales] = PROFILES
        if asked.cpus:
            found, devices = of_cpus(catalogue, asked.leave_out)
            scales = (OF_CPUS,)
        else:
            found = tables(catalogue, asked.observations, asked.task, devices)
        if asked.doubts:
            show_doubts(found, devices)
        elif asked.regret:
            show_regret(found, devices, hourly_prices(catalogue, devices))
        else:
            show_scores(found, devices, asked, scales)
    except EpochcostError as error:
        sys.exit(str(error))


def show_doubts(found: list[list[Placed]], devices: Devices) -> None:
    """A line for each row that cannot be right."""
    for rows in found:
        for doubt in doubted_rows(rows, devices).values():
            print(f"{doubt.where}: {doubt.reason}")


def show_regret(found: list[list[Placed]], devices: Devices, hourly: dict[str, float]) -> None:
    """What following predictions costs, table by table, and the roofline beside it."""
    for rows in found:
        by_predictions, by_roofline = regret(rows, devices, hourly)
        print(f"{Path(rows[0].rate.path).name}: {by_predictions}, by roofline {by_roofline}")


def show_scores(
    found: list[list[Placed]],
    devices: Devices,
    asked: argparse.Namespace,
    scales: Sequence[Scales],
) -> None:
    """Errors and coverage, table by table."""
    scored = []
    for rows in found:
        for anchors in asked.anchors:
            one = score(rows, devices, asked.leave_out, anchors, scales)
            name = Path(rows[0].rate.path).name
            if not asked.json:
                print(line(name, asked.leave_out, anchors, one), flush=True)
            entry = {"table": name, "left_out": asked.leave_out, "anchors": anchors}
            scored.append(entry | asdict(one))
    if asked.json:
        print(json.dumps(scored, indent=1))


if __name__ == "__main__":
    main()
