"""How our training step compares with PyTorch's, as benchmarks/training_step.py left it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from epochcost.errors import ResultError

Threads = Mapping[int, Decimal]
# Up to how many times as large or as small a batch a comparison still speaks for.
_NEAR = 2


class _File(BaseModel):
    """``models`` → model id → batch size → threads → mode of PyTorch → our time / theirs.

    Modes are eager and compile. ``dimensions`` → model id → dimensions that were measured in place
    of the spec's.
    """

    model_config = ConfigDict(frozen=True)

    models: dict[str, dict[int, dict[int, dict[str, Decimal]]]]
    dimensions: dict[str, dict[str, int]] = {}


@dataclass(frozen=True, slots=True)
class StepRatio:
    """Our step's time over PyTorch's.

    ``where`` says what was compared instead of the very work, such as "at batch size 4"; ``near``
    is False where that is more than twice or less than half the batch, which it cannot speak for.
    """

    value: Decimal
    where: str = ""
    near: bool = True


@dataclass(frozen=True, slots=True)
class StepRatios:
    """Our step's time over PyTorch's fastest mode, by model, batch size and threads."""

    worst: Mapping[str, Mapping[int, Threads]] = field(default_factory=dict)
    dimensions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def of(self, model: str, batch_size: int, threads: int) -> StepRatio | None:
        """The ratio; None where the model was not compared.

        A batch size that was not compared has the ratio of the nearest in proportion, and a count
        of threads that was not (0 is all), that of the most.
        """
        batches = self.worst.get(model)
        if not batches:
            return None
        apart = {size: max(size / batch_size, batch_size / size) for size in batches}
        nearest = min(apart, key=apart.__getitem__)
        counts = batches[nearest]
        value = counts[threads] if threads in counts else counts[max(counts)]
        where = [f"at batch size {nearest}"] if nearest != batch_size else []
        sizes = self.dimensions.get(model, {}).items()
        said = ", ".join([*where, *(f"at {name} {size}" for name, size in sizes)])
        return StepRatio(value, said, apart[nearest] <= _NEAR)


def read_ratios(path: Path) -> StepRatios:
    """The ratios of a file; none where there is no file.

    Against PyTorch's fastest mode our ratio is the largest, so the largest is kept. Raises
    ResultError on a file of another form.
    """
    if not path.is_file():
        return StepRatios()
    try:
        file = _File.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise ResultError(
            f"{path}: demanded ratios as benchmarks/training_step.py writes them; got {error}"
        ) from None
    worst = {
        model: {size: known for size, counts in batches.items() if (known := _worst(counts))}
        for model, batches in file.models.items()
    }
    return StepRatios(worst, file.dimensions)


def _worst(counts: Mapping[int, Mapping[str, Decimal]]) -> Threads:
    return {count: max(modes.values()) for count, modes in counts.items() if modes}
