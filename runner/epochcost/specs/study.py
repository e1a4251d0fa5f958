"""Studies: which models are measured where, how, and how precisely."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from epochcost.specs.base import DISTINCT, FROM_LIST, Identifier, NamedSpec, Positive, Spec, Text
from epochcost.specs.model import BatchSizes

# Raw samples are stored, about 11 bytes each: half a megabyte is as much as one result may weigh.
MOST_SAMPLES = 50_000
Mode = Literal["training", "inference"]
Provider = Literal["cpu", "cuda"]
Modes = Annotated[tuple[Mode, ...], FROM_LIST, Field(min_length=1), DISTINCT]
Providers = Annotated[tuple[Provider, ...], FROM_LIST, Field(min_length=1), DISTINCT]


class Sampling(Spec):
    """When a trial has measured enough: the mean is known well, or its time is used up.

    ``relative_half_width`` is of the 95 % interval of the mean step time; ``budget_seconds`` covers
    warm-up and samples, not the building of the graph and the start of the worker.
    """

    relative_half_width: Annotated[Positive, Field(lt=1)] = Decimal("0.02")
    minimum_samples: Annotated[int, Field(ge=10, le=MOST_SAMPLES)] = 30
    budget_seconds: Positive = Decimal(20)


class Study(NamedSpec):
    """A set of trials: models × hardware × modes × providers × batch sizes.

    A mode whose batch sizes are not given takes each model's own; ``threads`` 0 is all cores.
    """

    name: Text
    models: Annotated[tuple[Identifier, ...], FROM_LIST, Field(min_length=1), DISTINCT]
    hardware: Annotated[tuple[Identifier, ...], FROM_LIST, Field(min_length=1), DISTINCT] = (
        "local",
    )
    modes: Modes = ("training", "inference")
    providers: Providers = ("cpu", "cuda")
    training_batch_sizes: BatchSizes | None = None
    inference_batch_sizes: BatchSizes | None = None
    threads: Annotated[int, Field(ge=0, le=4096)] = 0
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    sampling: Sampling = Sampling()
    notes: Text | None = None
