"""epochcost's inference against PyTorch eager, torch.compile and OpenVINO, at three batch sizes.

    python benchmarks/inference.py [--models resnet50 …] [--batches 1 32 128] [--threads 2]
    python benchmarks/inference.py --table

The options are those of training_step.py. The programs take turns in separate processes, with equal
numbers of threads and in fp32. Each run copies a fresh batch in and computes every output into
memory of the host. Before a model is timed, its outputs are compared. The first command adds each
case to docs/data/inference-steps.json. The second command writes
docs/data/benchmarks/inference.json and the ratios on the site.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steps.cases import INFERENCE_CONTENDERS
from steps.environments import PACKAGES
from steps.table import measured, period, ratio_row, worst, write_site
from tables import DATA
from training_step import main

TRAINING = Path("docs/data/training-steps.json")
_TITLE = (
    "Our time of inference in fp32, and its ratio to the times of other programs; "
    "with a ratio below 1 we are faster"
)


def write(records: Mapping[str, Any], root: Path) -> list[str]:
    """Write table and ratios; returns a line for each case in which PyTorch is faster by 5 %."""
    compared = measured(records, "inference")
    machine = records["machine"]
    packages = ", ".join([machine["runtime"], PACKAGES["torch"][0], PACKAGES["openvino"][0]])
    table = {
        "title": _TITLE,
        "command": "python benchmarks/inference.py",
        "date": period(compared),
        "machine": f"{machine['logical_cpus']} vCPUs of an {machine['cpu']}, {packages}",
        "header": ["model", "batch", "threads", "ours", *INFERENCE_CONTENDERS.values()],
        "rows": [ratio_row(case, record, INFERENCE_CONTENDERS) for case, record in compared],
    }
    path = root / DATA / "inference.json"
    path.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", "utf-8")
    write_site(json.loads((root / TRAINING).read_text("utf-8")), root)
    return [f"{case.key}: {worst(record):.2f}" for case, record in compared if worst(record) > 1.05]


if __name__ == "__main__":
    main("inference", write)
