"""The JSON form of a result: its version, the history of versions, and how old files are read.

History of FORMAT_VERSION:
1  first form: trial, measurement with raw samples in seconds, environment.
2  the environment's `instance` (from metadata services) takes the place of `instance_type`, which
   was always null; parts of the processor, GPU settings, container, limits, revision; the sampling
   phase's conditions and energy; contradictions to the declared machine and hashes of spec files;
   the trial's load and the runs of LoadGen that served it; the rounds of a measurement,
   and whole epochs that were run, with the steps that their process sampled before them;
   the CPUs that a trial was pinned to.
   `virtualisation` names the hypervisor alone; in the first version a container hid it.
3  the machine's pace, read between the samples.
4  neither whole epochs beside the steps nor the machine's pace between them; of the environment
   no container, no place of an instance, no load, and no clocks, sockets and memory checks of CPU
   and GPUs. What earlier files have of these is ignored. No other runtimes and no settings of graph
   optimisation, spinning, denormals and input copies; a trial that varied one is kept apart. No
   int8: its files are no longer read.

A change of a record raises the version and adds a line above. New fields are optional and removed
fields are ``Former``, so that files of all versions are read alike; stored files are never edited.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from epochcost.errors import Fault, ResultError
from epochcost.results.fields import first_error, read_record
from epochcost.results.records import Result

FORMAT_VERSION = 4
_NUMBERS_ON_LINES = re.compile(r"\[\n\s*([-+.\deE]+(?:,\n\s*[-+.\deE]+)*)\n\s*\]")


class DamagedResultError(ResultError):
    """A file is not a valid result; ``fault`` says where and why."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(str(fault))


class NewerResultError(DamagedResultError):
    """A newer version of epochcost wrote the file, which is intact and must not be replaced."""


def serialise_result(result: Result) -> bytes:
    """The bytes of a result's file: a line for each key, so that changes can be reviewed.

    All samples are on one line.
    """
    text = json.dumps(result.model_dump(mode="json"), indent=1, ensure_ascii=False, allow_nan=False)
    return (_NUMBERS_ON_LINES.sub(_on_one_line, text) + "\n").encode()


def _on_one_line(numbers: re.Match[str]) -> str:
    return "[" + ", ".join(number.strip() for number in numbers[1].split(",")) + "]"


def parse_result(data: bytes, path: Path) -> Result:
    """Parse the bytes of a result file of any version; ``path`` is for messages only.

    Raises DamagedResultError if the bytes are not a complete and consistent result.
    """
    try:
        result = read_record(Result, data)
    except ValidationError as error:
        _require_version(_decoded(data, path).get("format_version"), path)
        raise _damaged(path, first_error(error)) from None
    _require_version(result.format_version, path)
    if result.trial_id != result.trial.id:
        expected = f"expected trial_id {result.trial.id} for this trial, got {result.trial_id}"
        raise _damaged(path, f"{expected}: the file was edited; measure again")
    return result.model_copy(update={"format_version": FORMAT_VERSION})


def _decoded(data: bytes, path: Path) -> dict[str, Any]:
    try:
        document = json.loads(data.decode())
    except UnicodeDecodeError as error:
        raise _damaged(path, f"expected UTF-8 text, got another byte at {error.start}") from None
    except json.JSONDecodeError as error:
        message = f"expected a complete JSON document, got an error here: {error.msg}"
        raise DamagedResultError(Fault(path, error.lineno, error.colno, message)) from None
    except (RecursionError, ValueError) as error:
        raise _damaged(path, f"expected a JSON document of a result, got {error}") from None
    if not isinstance(document, dict):
        raise _damaged(path, f"expected a JSON object, got {type(document).__name__}")
    return document


def _require_version(version: Any, path: Path) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _damaged(
            path, f"expected format_version from 1 to {FORMAT_VERSION}, got {version!r:.80}"
        )
    if version > FORMAT_VERSION:
        message = (
            f"expected format_version up to {FORMAT_VERSION}, got {version}: "
            "a newer epochcost wrote this file; update epochcost to read it"
        )
        raise NewerResultError(Fault(path, 1, 1, message))


def _damaged(path: Path, message: str) -> DamagedResultError:
    return DamagedResultError(Fault(path, 1, 1, message))
