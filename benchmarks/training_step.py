# /// script
# requires-python = ">=3.11"
# dependencies = ["epochcost[run]", "torch==2.13.0"]
# ///
"""Our training step against PyTorch eager and torch.compile, interleaved.

    python benchmarks/training_step.py [--models mnist-mlp …] [--batches 32 128] [--threads 2]
                                       [--rounds 15] [--write docs/data/step-ratio.json]

Run it from the repository's root with an interpreter that has epochcost and PyTorch. Each contender
lives in a process of its own, so that the idle threads of one runtime do not spin while the other
is timed. They take turns, one short burst of steps a round, and the ratio is taken round by round:
whatever else the machine does hits both. A step is what a trial times: a fresh batch copied in,
forward in training mode (dropout), loss, backward, the update of the model's own optimizer.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path.cwd()
BURST_SECONDS = 0.4
# A contender's threads go on spinning for a moment after its burst; the next one waits that out.
PAUSE_SECONDS = 0.25
CONTENDERS = ("ours", "eager", "compile")


def our_step(model_id: str, batch_size: int, threads: int) -> Callable[[], None]:
    """The very step that `epochcost run` times, from the same spec, bound in the same way."""
    from epochcost.execute.build import build_job
    from epochcost.execute.planning import Request, plan_here
    from epochcost.measure.session import open_session
    from epochcost.measure.stepping import Stepper
    from epochcost.measure.values import graph_inputs, initial_parameters
    from epochcost.specs.loader import load_catalogue

    catalogue = load_catalogue(ROOT)
    plan = plan_here(catalogue, Request(models=(model_id,), providers=("cpu",)))
    drawn = next(trial for trial in plan.trials if trial.mode == "training")
    trial = drawn.model_copy(update={"batch_size": batch_size, "threads": threads})
    model = catalogue.model(model_id)
    with tempfile.TemporaryDirectory() as folder:
        job = build_job(trial, model, catalogue.graph_path(model), Path(folder))
        session = open_session(job.graph, "cpu", job.session)
        inputs = graph_inputs(job, initial_parameters(job), session.get_inputs())
        return Stepper(session, "cpu", "training", inputs, job.carried)


def torch_step(model_id: str, batch_size: int, threads: int, compiled: bool) -> Callable[[], None]:
    """PyTorch's step of the module that the ONNX file was exported from."""
    import torch

    from epochcost.specs.loader import load_catalogue

    torch.set_num_threads(threads)
    model = load_catalogue(ROOT).model(model_id)
    training = model.training
    assert training is not None
    module, example = torch_network(model)
    module.train()
    network = torch.compile(module) if compiled else module
    optimizer = torch_optimizer(training.optimizer, module.parameters())
    loss_of = torch.nn.CrossEntropyLoss()
    batches = [drawn_inputs(model, example, batch_size) for _ in range(8)]
    labels = torch.randint(0, training.target.classes, (8, batch_size))
    fed, label = [value.clone() for value in batches[0]], labels[0].clone()
    count = 0

    def step() -> None:
        nonlocal count
        count += 1
        for held, fresh in zip(fed, batches[count % 8], strict=True):
            held.copy_(fresh)
        label.copy_(labels[count % 8])
        optimizer.zero_grad()
        loss_of(network(*fed), label).backward()
        optimizer.step()

    return step


def torch_network(model: Any) -> tuple[Any, Any]:
    """The module that the model's file was exported from, and example values of its inputs."""
    name = Path(model.graph).stem
    manifest = tomllib.loads((ROOT / "models" / "manifest.toml").read_text("utf-8"))
    network, inputs = _import(ROOT / "models" / manifest[name]["exporter"]).networks()[name]
    return network(), inputs


def drawn_inputs(model: Any, example: Any, batch_size: int) -> list[Any]:
    """A batch of each input, within the range that the spec gives it."""
    import torch

    batch = []
    for declared in model.inputs:
        value = example[declared.name]
        shape, (low, high) = (batch_size, *value.shape[1:]), map(float, declared.range)
        drawn = torch.rand(shape, dtype=torch.float64) * (high - low) + low
        batch.append(drawn.to(value.dtype))
    return batch


def _import(path: Path) -> ModuleType:
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def torch_optimizer(settings: Any, parameters: Any) -> Any:
    """PyTorch's optimizer with the spec's settings."""
    import torch

    classes = {
        "sgd": torch.optim.SGD,
        "rmsprop": torch.optim.RMSprop,
        "adagrad": torch.optim.Adagrad,
        "adadelta": torch.optim.Adadelta,
        "adam": torch.optim.Adam,
        "adamw": torch.optim.AdamW,
    }
    given = settings.model_dump(exclude={"name", "learning_rate", "beta1", "beta2"})
    terms = {"epsilon": "eps", "rho": "alpha" if settings.name == "rmsprop" else "rho"}
    options = {
        terms.get(key, key): value if isinstance(value, bool) else float(value)
        for key, value in given.items()
    }
    if hasattr(settings, "beta1"):
        options["betas"] = (float(settings.beta1), float(settings.beta2))
    return classes[settings.name](parameters, float(settings.learning_rate), **options)


def work(contender: str, model_id: str, batch_size: int, threads: int) -> None:
    """A contender's process: for each line on standard input time one burst, answer its mean."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if contender == "ours":
        step = our_step(model_id, batch_size, threads)
    else:
        step = torch_step(model_id, batch_size, threads, compiled=contender == "compile")
    for _ in range(10):
        step()
    print("ready", file=answers, flush=True)
    for _ in sys.stdin:
        print(burst(step), file=answers, flush=True)


def burst(step: Callable[[], None]) -> float:
    """The median seconds of the steps of one burst, the first (cold caches) left out."""
    step()
    seconds: list[float] = []
    while sum(seconds) < BURST_SECONDS or len(seconds) < 3:
        begun = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)


def start(contender: str, model_id: str, batch_size: int, threads: int) -> subprocess.Popen[str]:
    """Start a contender and wait until it is warm."""
    arguments = ["--work", contender, model_id, str(batch_size), str(threads)]
    process = subprocess.Popen(
        [sys.executable, __file__, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    if process.stdout.readline().strip() != "ready":
        sys.exit(f"{contender} did not start; run it by hand: {__file__} {' '.join(arguments)}")
    return process


def compare(model_id: str, batch_size: int, threads: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of a step by contender, one figure a round, all contenders within each round."""
    running = {name: start(name, model_id, batch_size, threads) for name in CONTENDERS}
    seconds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for index in range(rounds):
        order = CONTENDERS if index % 2 == 0 else CONTENDERS[::-1]
        for name in order:
            process = running[name]
            assert process.stdin is not None
            assert process.stdout is not None
            time.sleep(PAUSE_SECONDS)
            process.stdin.write("\n")
            process.stdin.flush()
            seconds[name].append(float(process.stdout.readline()))
    for process in running.values():
        process.communicate("")
    return seconds


def ratios(seconds: dict[str, list[float]], other: str) -> list[float]:
    """Ours over the other's, round by round, sorted."""
    return sorted(a / b for a, b in zip(seconds["ours"], seconds[other], strict=True))


def main() -> None:
    """Print the table; write the medians where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["mnist-mlp", "mnist-cnn"])
    parser.add_argument("--batches", nargs="+", type=int, default=[32, 128])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", type=Path, help="a JSON file for the site")
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        contender, model_id, batch_size, threads = options.work
        work(contender, model_id, int(batch_size), int(threads))
        return
    found: dict[str, dict[str, dict[str, float]]] = {}
    print(
        f"{'model':12} {'batch':>5} {'ours':>10} {'eager':>10} {'compile':>10}"
        f"   {'ours/eager (min-max)':24} {'ours/compile (min-max)'}"
    )
    for model_id in options.models:
        for batch_size in options.batches:
            seconds = compare(model_id, batch_size, options.threads, options.rounds)
            row = {name: ratios(seconds, name) for name in CONTENDERS[1:]}
            middle = {name: statistics.median(values) for name, values in row.items()}
            found.setdefault(model_id, {})[str(batch_size)] = {
                name: round(value, 3) for name, value in middle.items()
            }
            times = " ".join(f"{statistics.median(seconds[n]) * 1e3:7.2f} ms" for n in CONTENDERS)
            spread = [f"{middle[n]:.2f} ({r[0]:.2f}-{r[-1]:.2f})" for n, r in row.items()]
            print(f"{model_id:12} {batch_size:5} {times}   {spread[0]:24} {spread[1]}", flush=True)
    if options.write:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text(json.dumps(_record(found, options), indent=2) + "\n")


def _record(found: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    from importlib.metadata import version

    from epochcost.measure.environment import detect

    environment = detect()
    return {
        "command": f"benchmarks/training_step.py --threads {options.threads} "
        f"--rounds {options.rounds}",
        "as_of": dt.datetime.now(dt.UTC).date().isoformat(),
        "cpu": environment.cpu,
        "logical_cpus": environment.logical_cpus,
        "torch": version("torch"),
        "runtime": environment.runtime,
        "models": found,
    }


if __name__ == "__main__":
    main()
