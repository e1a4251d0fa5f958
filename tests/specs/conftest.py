"""A project with one spec of each kind, all valid; a test changes one thing."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from epochcost.specs.loader import check_paths

HARDWARE = """\
id = "box"
name = "A box"
provider = "Us"
vcpus = 4
source = "the lid"
"""
PRICE = """\
id = "box-2026"
hardware = "box"
plan = "on-demand"
provider = "Us"
amount = 0.90
source = "the list"
as_of = 2026-01-31
"""
MODEL = """\
id = "mlp"
name = "Perceptron"
task = "classification"
example = "an image"
graph = "mlp.onnx"
source = "a book"
[[inputs]]
name = "image"
[training]
loss = "softmax_cross_entropy"
output = "logits"
target = { classes = 10 }
optimizer = { name = "sgd", learning_rate = 0.1 }
batch_sizes = [32, 128]
examples_per_epoch = 60_000
epochs = 20
"""
STUDY = """\
id = "first"
name = "First"
models = ["mlp"]
hardware = ["box"]
"""
PUBLISHED = """\
id = "paper"
title = "A paper"
authors = "A. Author"
year = 2016
workload = "training"
model = "mlp"
source = "a journal"
as_of = 2016-11-01
[[timings]]
id = "one"
hardware = "box"
price = "box-2026"
batch_size = 20
seconds_per_epoch = 1404
epochs = 25
"""
VALID = {
    "specs/hardware/box.toml": HARDWARE,
    "specs/prices/box.toml": PRICE,
    "specs/models/mlp.toml": MODEL,
    "specs/studies/first.toml": STUDY,
    "specs/published/paper.toml": PUBLISHED,
}


class Project(NamedTuple):
    """A project's folder, which is the current folder."""

    root: Path

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file of the project, in folders that are made as needed; returns its path."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text that occurs once in a file."""
        text = (self.root / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} in {name}"
        self.write(name, text.replace(old, new))

    def faults(self, *paths: str) -> list[str]:
        """The lines that a check of these paths reports."""
        return [str(fault) for fault in check_paths(map(Path, paths or ("specs",))).faults]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A valid project."""
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    for name, text in VALID.items():
        project.write(name, text)
    project.write("models/mlp.onnx", b"")
    return project
