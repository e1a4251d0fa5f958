"""Time from arithmetic: ranges of times, peaks, and operations of declared models."""

from __future__ import annotations

from decimal import Decimal

from epochcost.cost.flops import peak_flops, time_of_large_models, training_flops
from epochcost.specs.hardware import Accelerator, Hardware
from epochcost.specs.model import DeclaredModel, Model

PETA = Decimal(10) ** 15


def machine(**fields: object) -> Hardware:
    """A machine with these fields in its spec."""
    named = {"id": "box", "name": "Box", "provider": "here", "source": "a test"}
    return Hardware.model_validate({**named, **fields})


def gpus(fp16: str | None, fp32: str | None) -> Hardware:
    """A machine with four accelerators of one kind."""
    peaks = {
        key: Decimal(value)
        for key, value in {"peak_fp16_tflops": fp16, "peak_fp32_tflops": fp32}.items()
        if value is not None
    }
    return machine(accelerators=[Accelerator(name="GPU", count=4, **peaks)])


def test_time_is_a_range() -> None:
    """The range of time for 1e18 operations is from half to a fifth of a peak of one petaflop/s."""
    time = time_of_large_models(1000 * PETA, PETA)
    assert (time.low, time.high) == (2000, 5000)
    assert abs(time.mean * Decimal("0.35") - 1000) < Decimal("1e-40")


def test_peaks_add_up() -> None:
    """Four accelerators have four times the peak of one."""
    assert peak_flops(gpus("312", "19.5"), "fp16") == Decimal(1248) * 10**12
    assert peak_flops(gpus("312", "19.5"), "fp32") == 78 * 10**12


def test_unknown_peaks() -> None:
    """A machine whose spec has no peak of the precision has no peak."""
    for hardware in (gpus(None, "19.5"), machine(peak_fp32_tflops=Decimal(2)), machine()):
        assert peak_flops(hardware, "fp16") is None


BIG = {"id": "big", "name": "Big", "task": "language", "example": "a token", "source": "a test"}


def test_operations_of_a_declared_model() -> None:
    """A declared model takes 6 operations for each parameter and token."""
    model = Model(**BIG, declared=DeclaredModel(parameters=10, training_tokens=100))
    assert training_flops(model, None) == 6000


def test_operations_of_a_model_with_a_graph() -> None:
    """A training takes three forward passes for each example of its epochs, if both are known."""
    training = {
        "output": "scores",
        "loss": "softmax_cross_entropy",
        "target": {"classes": 10},
        "optimizer": {"name": "sgd", "learning_rate": 1},
        "batch_sizes": [128],
        "examples_per_epoch": 1000,
        "epochs": 2,
    }
    trained = Model.model_validate(
        {**BIG, "graph": "big.onnx", "inputs": [{"name": "x"}], "training": training}
    )
    assert training_flops(trained, 7.0) == 3 * 7 * 2000
    assert training_flops(trained, None) is None
    assert training_flops(trained.model_copy(update={"training": None}), 7.0) is None
