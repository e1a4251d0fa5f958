"""A complete project that measures in seconds: one linear model, study and machine."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
from onnx import TensorProto, helper

_HARDWARE = """
id = "local"
name = "This machine"
provider = "local"
detected = true
source = "read from the machine when it measures"
"""
# No machine that runs tests has this many CPUs.
_OTHER_HARDWARE = """
id = "giant"
name = "A giant"
provider = "nobody"
vcpus = 4099
source = "made up for a test"
"""
_PRICE = """
id = "{machine}-{day}"
hardware = "{machine}"
plan = "on-demand"
provider = "Cloud"
amount = {amount}
billing = "prorated"
source = "a test"
as_of = 2026-{day}
"""
OWNED_PRICE = """
id = "own"
hardware = "local"
plan = "owned"
provider = "local"
assumed = true
source = "assumed"
as_of = 2026-11-01
ranges = { "owned.utilisation" = { low = 0.1, high = 0.5 } }
[owned]
purchase = 8766
years = 4
utilisation = 0.25
power_watts = 100
electricity_per_kwh = 0.2
"""
_MODEL = """
id = "tiny"
name = "Tiny"
task = "tests"
example = "sixteen numbers"
graph = "tiny.onnx"
source = "made up for a test"

[[inputs]]
name = "x"
low = -1
high = 1

[training]
loss = "softmax_cross_entropy"
output = "logits"
target = { classes = 3 }
optimizer = { name = "sgd", learning_rate = 0.02, momentum = 0.5 }
batch_sizes = [2, 4]
examples_per_epoch = 1000
epochs = 1

[inference]
batch_sizes = [1]
"""
_STUDY = """
id = "brief"
name = "Brief"
models = ["tiny"]
rounds = 1

[sampling]
relative_half_width = 0.5
minimum_samples = 10
budget_seconds = 0.5
"""


def write_tiny_project(root: Path) -> Path:
    """Write specs and model under ``root`` and return it: three CPU trials of about two seconds."""
    files = {
        "hardware/local": _HARDWARE,
        "hardware/giant": _OTHER_HARDWARE,
        "models/tiny": _MODEL,
        "studies/brief": _STUDY,
    }
    for name, text in files.items():
        path = root / "specs" / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "models").mkdir()
    onnx.save(linear_model(), root / "models" / "tiny.onnx")
    return root


def price_text(machine: str, amount: str, day: str = "11-01") -> str:
    """The spec of a list price on demand, as of a day in 2026."""
    return _PRICE.format(machine=machine, amount=amount, day=day)


def linear_model() -> onnx.ModelProto:
    """A model ``logits = x wᵀ + b`` without weights; x is (batch, 16), logits are (batch, 3)."""
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Gemm", ["x", "w", "b"], ["logits"], transB=1)],
            "tiny",
            [
                helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 16]),
                helper.make_tensor_value_info("w", TensorProto.FLOAT, [3, 16]),
                helper.make_tensor_value_info("b", TensorProto.FLOAT, [3]),
            ],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3])],
        ),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=10,
    )
    initial = {
        name: {"distribution": "uniform", "scale": 0.5, "seed": seed}
        for seed, name in enumerate(["w", "b"])
    }
    helper.set_model_props(model, {"epochcost.parameters": json.dumps(initial)})
    return model
