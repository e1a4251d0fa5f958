"""How our training step compares with PyTorch's, as benchmarks/training_step.py left it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from epochcost.errors import ResultError


class _File(BaseModel):
    """``models`` → model id → batch size → mode of PyTorch (eager, compile) → our time / theirs."""

    model_config = ConfigDict(frozen=True)

    models: dict[str, dict[int, dict[str, Decimal]]]


@dataclass(frozen=True, slots=True)
class StepRatios:
    """Our step's time over PyTorch's fastest mode, by model and batch size."""

    worst: Mapping[tuple[str, int], Decimal] = field(default_factory=dict)

    def of(self, model: str, batch_size: int) -> Decimal | None:
        """The ratio; None where it was not measured."""
        return self.worst.get((model, batch_size))


def read_ratios(path: Path) -> StepRatios:
    """The ratios of a file; none where there is no file.

    Against PyTorch's fastest mode our ratio is the largest, so the largest is kept. Raises
    ResultError on a file of another form.
    """
    if not path.is_file():
        return StepRatios()
    try:
        models = _File.model_validate_json(path.read_bytes()).models
    except ValidationError as error:
        raise ResultError(
            f"{path}: demanded ratios as benchmarks/training_step.py writes them; got {error}"
        ) from None
    return StepRatios(
        {
            (model, batch): max(modes.values())
            for model, batches in models.items()
            for batch, modes in batches.items()
            if modes
        }
    )
