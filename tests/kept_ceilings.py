"""Made-up ceilings: 100 and 160 GFLOP/s, 10 and 12 GB/s on one and two threads."""

from __future__ import annotations

import datetime as dt
from typing import Any

from epochcost.results.ceilings import CEILINGS_VERSION, Ceiling, Ceilings
from epochcost.results.environment import Environment, fingerprint
from epochcost.specs.study import Precision

_SIDE, _COPIED = 2048, 2**29


def ceiling(
    threads: int, flops: float, copy_bytes: float, precision: Precision = "fp32"
) -> Ceiling:
    """A ceiling with these median rates, and with times from 2 % shorter to 5 % longer."""
    product, copy = 2 * _SIDE**3 / flops, 2 * _COPIED / copy_bytes
    return Ceiling(
        threads=threads,
        precision=precision,
        matrix_side=_SIDE,
        product_seconds=(product * 1.05, product, product * 0.98),
        copied_bytes=_COPIED,
        copy_seconds=(copy * 1.05, copy, copy * 0.98),
    )


def make_ceilings(environment: Environment, **fields: Any) -> Ceilings:
    """A consistent record of a host; ``fields`` replace its own."""
    known: dict[str, Any] = {
        "ceilings_version": CEILINGS_VERSION,
        "hardware": "local",
        "provider": "cpu",
        "measured_at": dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC),
        "ceilings": (ceiling(1, 1e11, 1e10), ceiling(2, 1.6e11, 1.2e10)),
        "environment": environment,
    }
    return Ceilings(**(known | fields))


def with_own_fingerprint(environment: Environment) -> Environment:
    """The environment with the fingerprint that follows from its facts."""
    assert environment.memory_bytes is not None
    digits = fingerprint(
        environment.cpu,
        environment.physical_cores,
        environment.logical_cpus,
        environment.memory_bytes,
        environment.gpus,
    )
    return environment.model_copy(update={"fingerprint": digits})
