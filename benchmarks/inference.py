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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from steps.cases import INFERENCE_CONTENDERS, OURS
from steps.environments import PACKAGES
from steps.figures import ratios, step_seconds
from steps.table import PYTORCH, Compared, days, measured, milliseconds, ratio_cell, write_site
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
    as_of = days(compared)
    machine = records["machine"]
    packages = ", ".join([machine["runtime"], PACKAGES["torch"][0], PACKAGES["openvino"][0]])
    table = {
        "title": _TITLE,
        "command": "python benchmarks/inference.py",
        "date": " to ".join(dict.fromkeys((as_of[0], as_of[-1]))),
        "machine": f"{machine['logical_cpus']} vCPUs of an {machine['cpu']}, {packages}",
        "header": ["model", "batch", "threads", "ours", *INFERENCE_CONTENDERS.values()],
        "rows": [
            [
                case.subject.model,
                str(case.batch_size),
                str(case.threads),
                milliseconds(step_seconds(record, OURS)),
                *(
                    ratio_cell(ratios(record).get(name), failed=name in record["failed"])
                    for name in INFERENCE_CONTENDERS
                ),
            ]
            for case, record in compared
        ],
    }
    path = root / DATA / "inference.json"
    path.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", "utf-8")
    write_site(json.loads((root / TRAINING).read_text("utf-8")), root)
    return list(_slower(compared))


def _slower(compared: Compared) -> Iterator[str]:
    for case, record in compared:
        spreads = {n: s for n, s in ratios(record).items() if n in PYTORCH}
        worst = max((s.middle for s in spreads.values()), default=0.0)
        if worst > 1.05:
            yield f"{case.key}: {worst:.2f}"


if __name__ == "__main__":
    main("inference", write)
