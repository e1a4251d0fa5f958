"""epochcost's trainings against PyTorch's: equal network, data and recipe, to one accuracy.

    python benchmarks/time_to_accuracy.py [--model digits-cnn] [--repeats 10] [--target 0.985]

epochcost and PyTorch train whole recipes on one thread and alternate after each repeat. The first
weights and the order of examples are equal; Dropout draws differ. Compares the epochs until the
target, the final accuracy, and the seconds until the target and in all. Seconds include steps and
the gathering of batches, but no evaluations. PyTorch runs eagerly, in the interpreter that
benchmarks/steps/environments.py builds or EPOCHCOST_STEPS_TORCH names.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
# The model's class in models/export_trained.py.
MODULES = {"digits-mlp": "DigitsMlp", "digits-cnn": "DigitsCnn"}


def train_with_torch(prepared: Path) -> dict[str, Any]:
    """Train as the file ``prepared`` describes, in PyTorch's environment."""
    import torch

    torch.set_num_threads(1)
    sys.path.insert(0, str(ROOT / "models"))
    arrays = np.load(prepared)
    module = getattr(importlib.import_module("export_trained"), str(arrays["module"]))()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(torch.from_numpy(arrays[f"weights/{name}"]))
    data = {name: torch.from_numpy(arrays[name]) for name in ("x", "y", "x_test", "y_test")}
    rates, order = arrays["rates"], torch.from_numpy(arrays["order"])
    optimizer = torch.optim.Adam(module.parameters())
    seconds, curve, step = 0.0, list[float](), 0
    for epoch in order:
        begun = time.perf_counter()
        module.train()
        for rows in epoch:
            optimizer.param_groups[0]["lr"] = float(rates[step])
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(module(data["x"][rows]), data["y"][rows])
            loss.backward()
            optimizer.step()
            step += 1
            loss.item()
        seconds += time.perf_counter() - begun
        module.eval()
        with torch.no_grad():
            right = module(data["x_test"]).argmax(1) == data["y_test"]
        curve.append(float(right.float().mean()))
    return {"seconds": seconds, "curve": curve}


def prepare_arrays(prepared: Any, seed: int, path: Path) -> None:
    """Write PyTorch's input: the arrays that feed epochcost's steps, and the first weights."""
    from dataclasses import replace

    from epochcost.train.loop import rates_at
    from onnxstep.graphs.parameters import materialise

    feed, recipe = replace(prepared.feed, seed=seed), prepared.recipe
    steps = feed.epoch_steps
    orders, rates = [], []
    for epoch in range(recipe.epochs):
        count = np.arange(epoch * steps, (epoch + 1) * steps)
        rates.append(rates_at(recipe, feed, count))
        orders.append(feed.batches(epoch * steps, rates[-1]).order)
    parts = {}
    for name, part in (("", feed.examples.training), ("_test", feed.examples.held_out)):
        fed = feed.gathered(part, np.arange(len(part.labels)))
        parts |= {f"x{name}": fed[feed.inputs[0].name], f"y{name}": fed[feed.target.name]}
    weights = {f"weights/{n}": v for n, v in materialise(prepared.graph, seed).items()}
    module = MODULES[prepared.request.model.id]
    np.savez(
        path, module=module, order=np.stack(orders), rates=np.concatenate(rates), **parts, **weights
    )


def train_with_ours(prepared: Any, seed: int, folder: Path) -> dict[str, Any]:
    """Train with epochcost's steps."""
    from epochcost.execute.training import run_repeat

    repeat = run_repeat(prepared, seed, folder, lambda *_: None, lambda: False)
    assert repeat is not None, "nobody stops it"
    return {
        "seconds": repeat.step_seconds,
        "curve": [point.accuracy for point in repeat.curve if point.step],
    }


def main() -> None:
    """Train both sides in turn, and print the results, their spread and the ratio of times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=sorted(MODULES), default="digits-cnn")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--target", type=float, default=0.985)
    parser.add_argument("--worker", type=Path)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(train_with_torch(options.worker)))
        return

    from steps.environments import interpreter

    from epochcost.execute.training import TrainingRequest, prepare
    from epochcost.plan.trial import SessionSettings
    from epochcost.specs.loader import load_catalogue
    from epochcost.train.loop import Recipe

    catalogue = load_catalogue(ROOT)
    model = catalogue.model(options.model)
    training, data = model.training, catalogue.datasets["digits"]
    assert training is not None, "it has a recipe"
    recipe = Recipe(training.schedule, training.optimizer.learning_rate, training.epochs, 0)
    request = TrainingRequest(model, training, data, 32, "cpu", SessionSettings(threads=1))
    torch = interpreter("eager", ROOT / ".cache" / "steps" / "environments")
    runs: dict[str, list[dict[str, Any]]] = {"ours": [], "PyTorch": []}
    with tempfile.TemporaryDirectory() as scratch:
        prepared = prepare(request, recipe, catalogue, Path(scratch))
        for seed in range(options.repeats):
            file = Path(scratch, "prepared.npz")
            prepare_arrays(prepared, seed, file)
            runs["ours"].append(train_with_ours(prepared, seed, Path(scratch, str(seed))))
            command = [str(torch), __file__, "--worker", str(file)]
            process = subprocess.run(command, check=True, capture_output=True, text=True)
            runs["PyTorch"].append(json.loads(process.stdout))
    _report(options, runs)


def _report(options: argparse.Namespace, runs: dict[str, list[dict[str, Any]]]) -> None:
    from epochcost.results.trainings import spread

    print(f"{options.model}, {options.repeats} repeats, to {options.target:.1%}:")
    seconds = {}
    for side, repeats in runs.items():
        epochs = []
        for each in repeats:
            met = (n for n, height in enumerate(each["curve"], 1) if height >= options.target)
            epochs.append(next(met, None))
        reached = [(n, each) for n, each in zip(epochs, repeats, strict=True) if n is not None]
        to_target = [each["seconds"] * n / len(each["curve"]) for n, each in reached]
        seconds[side] = spread(to_target).mean
        for label, values in (
            ("epochs to target", [float(n) for n, _ in reached]),
            ("seconds to target", to_target),
            ("seconds in all", [each["seconds"] for each in repeats]),
            ("accuracy at the end, %", [100 * each["curve"][-1] for each in repeats]),
        ):
            estimate = spread(values)
            print(f"  {side:8} {label:24} {estimate.mean:8.3f} ± {estimate.half_width or 0:.3f}")
        print(f"  {side:8} reached in {len(reached)} of {len(repeats)}")
    whole = [spread([e["seconds"] for e in runs[side]]).mean for side in ("ours", "PyTorch")]
    print(f"  ours / PyTorch: {seconds['ours'] / seconds['PyTorch']:.2f} to the target, ", end="")
    print(f"{whole[0] / whole[1]:.2f} in all")


if __name__ == "__main__":
    main()
