"""An example for every command, which ends its help; a test keeps them to the commands' options."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import typer

EXAMPLES: Mapping[str, str] = MappingProxyType(
    {
        "break-even": "epochcost break-even --own assumed-workstation-1x-a6000",
        "build": "epochcost build --strict",
        "ceilings": "epochcost ceilings --hardware local",
        "cheapest": "epochcost cheapest --model mnist-cnn --deadline 2h --budget 5USD",
        "check": "epochcost check specs/prices",
        "diff": "epochcost diff main",
        "estimate": "epochcost estimate --model gpt2-xl --price p4d.24xlarge-on-demand-2026-07 "
        "--utilisation 0.3-0.5",
        "fmt": "epochcost fmt --check",
        "init": "epochcost init our-costs",
        "new hardware": "epochcost new hardware --detect --id workstation",
        "new price": "epochcost new price --hardware g6.xlarge --amount 0.8048 "
        '--source "the provider\'s list"',
        "new model": "epochcost new model --graph model.onnx --loss softmax_cross_entropy",
        "new study": "epochcost new study --model mnist-cnn --id first",
        "plan": "epochcost plan --study starter --verbose",
        "prices import": "epochcost prices import vms.csv --provider aws --as-of 2026-07-20 "
        '--source "REPOSITORY@COMMIT, vms.csv" --dry-run',
        "quote": "epochcost quote --price g6.xlarge-on-demand-2026-07 --duration 428s",
        "run": "epochcost run --study starter --resume",
        "runtimes install": "epochcost runtimes install onnxruntime==1.20.1",
        "runtimes list": "epochcost runtimes list",
        "schema": "epochcost schema --to docs/schemas",
        "serve": "epochcost serve --dev-addr 127.0.0.1:8001",
        "train-graph": "epochcost train-graph model.onnx --dim batch=32 --optimizer rmsprop "
        "-o step.onnx",
    }
)


def show_examples(app: typer.Typer, group: str = "") -> None:
    """End the help of every command below an app with its example.

    Raises KeyError for a command without one.
    """
    for command in app.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "")
        # The mark keeps the lines as they are.
        command.epilog = f"\b\nExample:\n  {EXAMPLES[f'{group}{name}']}"
    for inner in app.registered_groups:
        if inner.typer_instance is not None:
            show_examples(inner.typer_instance, f"{inner.name} ")
