"""CUDA's numbers and NVML's: what the variable leaves, in the order that it names."""

from __future__ import annotations

import pytest

from epochcost.measure.gpus import visible_gpus
from fake_nvml import Device, FakeNvml

PART = Device({"nvmlDeviceGetUUID": "MIG-aaaa"})


def board(uuid: str, *parts: Device) -> Device:
    """A GPU with a UUID and perhaps parts."""
    made = Device({"nvmlDeviceGetUUID": uuid, "parts": parts})
    for part in parts:
        part.answers["nvmlDeviceGetDeviceHandleFromMigDeviceHandle"] = made
    return made


BOARDS = (board("GPU-11ab"), board("GPU-11cd", PART), board("GPU-22ef"))


@pytest.mark.parametrize(
    ("shown", "numbers"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("2,0", [2, 0]),
        (" 1 , 2", [1, 2]),
        ("1,7,2", [1]),
        ("0,-1,2", [0]),
        ("2,2", []),
        ("GPU-22", [2]),
        ("GPU-11", []),
        ("GPU-11cd,0", [1, 0]),
        ("0,GPU-11ab", []),
        ("MIG-aaaa", [1]),
        ("MIG-bbbb", []),
        ("NoDevFiles", []),
    ],
)
def test_the_variable_chooses_and_orders(shown: str | None, numbers: list[int]) -> None:
    """Numbers, begins of UUIDs and parts; what is invalid hides the rest, what is double all."""
    gpus = visible_gpus(FakeNvml(*BOARDS), BOARDS, shown)
    assert [gpu.number for gpu in gpus] == numbers
    assert [gpu.board for gpu in gpus] == [BOARDS[number] for number in numbers]


def test_a_part_is_told_from_its_board() -> None:
    """Its handle is of the part: memory and processes; power and clocks are of the board."""
    ((gpu,), (whole,)) = (visible_gpus(FakeNvml(*BOARDS), BOARDS, one) for one in ("MIG-aaaa", "1"))
    assert gpu.handle is PART
    assert gpu.board is BOARDS[1]
    assert (gpu.partial, whole.partial) == (True, False)


def test_a_driver_that_tells_no_uuid_matches_none() -> None:
    """An unknown UUID begins with nothing."""
    silent = (Device({"nvmlDeviceGetName": "T4"}),)
    assert visible_gpus(FakeNvml(*silent), silent, "GPU-11") == ()
    assert len(visible_gpus(FakeNvml(*silent), silent, "0")) == 1
