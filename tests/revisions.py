"""A small project in its own git repository, to compare revisions."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from epochcost.analysis.difference.changes import Difference, compare_snapshots
from epochcost.analysis.difference.revision import at_commit, in_working_tree
from epochcost.analysis.table.lines import values_of
from epochcost.report.pages.page import Report
from epochcost.results.records import Result
from report_project import REPOSITORY, inputs_of, make_result, store_results

Compare = Callable[[], Difference]

SPECS = {
    "hardware/local": """
        id = "local"
        name = "This machine"
        provider = "local"
        vcpus = 2
        source = "a test"
    """,
    "hardware/other": """
        id = "other"
        name = "Another machine"
        provider = "local"
        vcpus = 4
        source = "a test"
    """,
    "prices/local-2025": """
        id = "local-2025"
        hardware = "local"
        plan = "on-demand"
        provider = "Cloud"
        amount = 0.90
        billing = "prorated"
        source = "a test"
        as_of = 2025-11-01
    """,
    "models/net": """
        id = "net"
        name = "Net"
        task = "classification"
        example = "an image"
        graph = "mnist_mlp.onnx"
        source = "a test"
        [[inputs]]
        name = "image"
        [training]
        loss = "softmax_cross_entropy"
        output = "logits"
        target = { classes = 10 }
        optimizer = { name = "sgd", learning_rate = 0.1 }
        batch_sizes = [32]
        examples_per_epoch = 6400
        epochs = 10
        [inference]
        batch_sizes = [1]
    """,
}
# Steps of 10 ms, known to a percent; regular, so that their interval is.
PAPER = """
    id = "paper"
    title = "A paper"
    authors = "A. Author"
    year = 2016
    workload = "the net"
    model = "net"
    source = "a journal"
    as_of = 2016-11-01
    [[timings]]
    id = "one"
    hardware = "local"
    batch_size = 128
    seconds_per_epoch = 20
    epochs = 10
"""
STEPS = (0.0099, 0.0101, 0.0100, 0.0102, 0.0098) * 12


def git(folder: Path, *arguments: str) -> str:
    """The output of git, without anybody's configuration."""
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    quiet = ("-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null")
    done = subprocess.run(
        ["git", *who, *quiet, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(folder: Path) -> str:
    """Commit all files; returns the commit's id."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "x")
    return git(folder, "rev-parse", "HEAD")


def write_repository(folder: Path, results: Sequence[Result] = ()) -> Path:
    """Write a repository with one commit: two machines, one price, a model and a result."""
    for name, text in SPECS.items():
        write_spec(folder, name, text)
    (folder / "models").mkdir()
    shutil.copyfile(REPOSITORY / "models/mnist_mlp.onnx", folder / "models/mnist_mlp.onnx")
    store_results(folder, results or [make_result(samples=STEPS, rounds=3)])
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit(folder)
    return folder


def write_spec(folder: Path, name: str, text: str) -> None:
    """Write a spec file."""
    path = folder / "specs" / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def edit(folder: Path, name: str, old: str, new: str) -> None:
    """Replace a text in a spec file."""
    path = folder / "specs" / f"{name}.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def compared(project: Path) -> Difference:
    """The differences between the commit and the working tree."""
    return compare_snapshots(at_commit(project, "HEAD"), in_working_tree(project))


def dataset_amounts(project: Path) -> set[object]:
    """Every cost in the published table."""
    columns = ("epoch_cost", "full_cost", "million_cost")
    lines = [values_of(line) for line in Report(inputs_of(project)).lines]
    return {line[name] for line in lines for name in columns if line.get(name) is not None}
