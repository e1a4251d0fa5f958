"""A real training killed at random, held to the closed form, to simulation and to a replay.

    python benchmarks/interruptions.py [--per-hour 450] [--save-seconds 1] [--epochs 6000]

The perceptron for scikit-learn's digits is trained by processes that SIGKILL ends at random, until
it is done; each seed draws other moments. Printed are interruptions, what was lost, and the time
that machines ran: as measured; as `cost.spot` expects it of the measured work, saves and starts; as
`cost.simulation` plays it; as `cost.replay` has it over a trace of these very starts; and whether
the weights are those of a training that nobody disturbed. Percent are of measured time over each.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from epochcost.cost.market import Market
from epochcost.cost.replay import MovingJob, replay
from epochcost.cost.simulation import simulate_runs
from epochcost.execute.interruptions import InterruptedTraining, random_ends, run_interrupted
from epochcost.specs.prices.traces import Trace, ZoneTrace
from epochcost.specs.terms import BILLING_RULES
from real_trainings import prepared_digits, run

_ROW = "{:<22} {:>13} {:>9} {:>9}"
_SIMULATED = 2000


def replayed_seconds(found: InterruptedTraining) -> tuple[float, int]:
    """What a replay over these starts has a machine running, in seconds, and interruptions."""
    ends = np.cumsum([one.lasted for one in found.starts])
    # A machine is back at once; the last start, which ended by itself, lasts as long as it needs.
    times = np.concatenate([[0.0], np.stack([ends[:-1], ends[:-1] + 1e-3], axis=1).ravel()])
    zone = ZoneTrace(times, np.ones(len(times)), np.arange(len(times)) % 2 == 0)
    market = Market(Trace({"here": zone}, "USD", 0.0, float(ends[-1]) + 3600, "measured"))
    job = MovingJob(
        work_seconds=found.work_seconds,
        interval_seconds=found.interval_seconds,
        save_seconds=found.save_seconds,
        restart_seconds=found.start_seconds,
    )
    outcome = replay(market, job, "stay", np.array([found.starts[0].until_work]))
    return float(outcome.running[0]) + found.starts[0].until_work, int(outcome.interruptions[0])


def main() -> int:
    """Train undisturbed once and interrupted for each seed, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--per-hour", type=float, default=450.0)
    parser.add_argument("--save-seconds", type=float, default=1.0)
    parser.add_argument("--epochs", type=int, default=6000)
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepared = prepared_digits(
            folder, asked.save_seconds, epochs=asked.epochs, evaluate_every=20_000
        )
        whole = run(prepared, folder / "whole")
        assert whole is not None, "nothing stopped it"
        found = [
            run_interrupted(prepared, 3, folder / str(seed), random_ends(asked.per_hour, seed))
            for seed in range(asked.seeds)
        ]
    same = sum(one.repeat.weights_sha256 == whole.weights_sha256 for one in found)
    print(f"weights as undisturbed: {same} of {len(found)}")
    print(_ROW.format("", "interruptions", "rework s", "running s"))
    expected = [one.expected(asked.per_hour) for one in found]
    simulated = [_simulated(one, asked.per_hour) for one in found]
    replayed = [replayed_seconds(one) for one in found]
    rows = {
        "measured": [(one.interruptions, one.rework_seconds, one.running_seconds) for one in found],
        "closed form": [
            (float(one.interruptions), float(one.rework), float(one.running)) for one in expected
        ],
        "simulated": [(one[0], float("nan"), one[1]) for one in simulated],
        "replay of these starts": [(one[1], float("nan"), one[0]) for one in replayed],
    }
    for name, values in rows.items():
        print(_ROW.format(name, *(f"{sum(one):.1f}" for one in zip(*values, strict=True))))
    _print_ratios(rows)
    return 0 if same == len(found) else 1


def _simulated(found: InterruptedTraining, per_hour: float) -> tuple[float, float]:
    runs = list(simulate_runs(found.job(per_hour), BILLING_RULES["per-second"], _SIMULATED, 1))
    return (
        statistics.fmean(one.interruptions for one in runs),
        statistics.fmean(one.running for one in runs),
    )


def _print_ratios(rows: dict[str, list[tuple[float, float, float]]]) -> None:
    measured = [sum(one) for one in zip(*rows["measured"], strict=True)]
    for name, values in list(rows.items())[1:]:
        others = [sum(one) for one in zip(*values, strict=True)]
        words = (f"{a / b - 1:+.1%}" for a, b in zip(measured, others, strict=True))
        print(_ROW.format(f"measured over {name}"[:22], *words))


if __name__ == "__main__":
    sys.exit(main())
