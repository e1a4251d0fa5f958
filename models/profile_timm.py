# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "epochcost", "onnx==1.23.2", "timm==1.0.31", "torch==2.13.0", "torchvision==0.28.0",
# ]
# ///
"""Writes the work of the graphs of timm's models: specs/observations/timm-profiles.csv.

The rows of specs/observations/timm.csv name models and image sizes; each is built with random
weights, exported, counted by ``epochcost.graphs.profiling`` and thrown away.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from dataclasses import asdict, fields
from pathlib import Path

from epochcost.graphs.profile import Profile
from epochcost.graphs.profiling import arithmetic_of_file

TABLES = Path(__file__).parents[1] / "specs" / "observations"
# Their positions are sized for one image.
SIZED = ("vit", "deit", "beit", "swin", "mixer")


def works() -> list[tuple[str, int]]:
    """The models and image sizes that the table names."""
    with (TABLES / "timm.csv").open(newline="") as file:
        rows = csv.DictReader(file)
        return sorted({(row["model"], int(row["sequence_or_image"])) for row in rows})


def exported(name: str, size: int, folder: Path) -> Path:
    """The ONNX file of a model for one image, in this folder unless it is there."""
    path = folder / f"{name}@{size}.onnx"
    if not path.exists():
        import timm  # noqa: PLC0415
        import torch  # noqa: PLC0415

        sized = {"img_size": size} if name.startswith(SIZED) else {}
        model = timm.create_model(name, pretrained=False, exportable=True, **sized).eval()
        image = torch.zeros(1, 3, size, size)
        torch.onnx.export(model, image, path, dynamo=False, do_constant_folding=False)
    return path


def main(folder: Path) -> None:
    """Count every model; ``folder`` keeps the exports."""
    columns = [field.name for field in fields(Profile)]
    with (TABLES / "timm-profiles.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, ["model", "size", *columns], lineterminator="\n")
        table.writeheader()
        for name, size in works():
            arithmetic = arithmetic_of_file(exported(name, size, folder), {})
            if arithmetic is None or arithmetic.profile is None:
                raise SystemExit(f"{name}: expected a graph that can be counted")
            counts = asdict(arithmetic.profile)
            rounded = {key: round(value) for key, value in counts.items()}
            table.writerow({"model": name, "size": size, **rounded})
            file.flush()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(Path(scratch))
