"""The tables of a project put together: rows on devices that are known, and names of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path

import tomli
from pydantic import ValidationError

from epochcost.errors import Fault, InputError, SpecError
from epochcost.graphs.profile import Profile
from epochcost.predict.design import Devices, Placed
from epochcost.predict.rates import Rate, read_profiles, read_rates, without_repeats
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.device import Device
from epochcost.specs.hardware import Accelerator, Hardware
from epochcost.specs.observation import ObservationTable

Profiles = Mapping[tuple[str, str], Profile]


def placed(
    rates: Iterable[Rate], devices: Devices, profiles: Profiles
) -> tuple[list[Placed], frozenset[str]]:
    """The rates of examples on devices that are known, and the names of accelerators that are not.

    How long a run took to its target says as much of the training as of the machine: left out.
    """
    found, unknown = [], set()
    for rate in rates:
        if not rate.is_of_examples:
            continue
        device = devices.named(rate.accelerator)
        if device is None:
            unknown.add(rate.accelerator)
        else:
            found.append(Placed(rate, device, profiles.get((rate.model, rate.size))))
    return found, frozenset(unknown)


def placed_tables(
    catalogue: Catalogue, tables: Iterable[ObservationTable], devices: Devices
) -> tuple[Placed, ...]:
    """The rows of some tables of a project, repeats reduced to their medians.

    Raises InputError for a table that cannot be read.
    """
    found: list[Placed] = []
    for table in tables:
        folder = catalogue.files[f"observations/{table.id}"].parent
        profiles = read_profiles(folder / table.profiles) if table.profiles else {}
        rates = without_repeats(read_rates(folder / table.table))
        found += placed(rates, devices, profiles)[0]
    return tuple(found)


def table_faults(spec: Path) -> tuple[Fault, ...]:
    """What cannot be read in the files that a spec of observations names; none for a bad spec."""
    try:
        named = ObservationTable.model_validate(tomli.loads(spec.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomli.TOMLDecodeError, ValidationError):
        return ()
    faults: list[Fault] = []
    for name, read in ((named.table, read_rates), (named.profiles, read_profiles)):
        if name is not None and (spec.parent / name).is_file():
            try:
                read(spec.parent / name)
            except SpecError as error:
                faults += error.faults
    return tuple(faults)


def described(files: Iterable[Path]) -> tuple[Device, ...]:
    """The devices that hardware specs describe; raises InputError for a file that is none.

    What makes a prediction possible must be there: memory, bandwidth and the peak in fp32.
    """
    devices = []
    for file in files:
        try:
            hardware = Hardware.model_validate(
                tomli.loads(file.read_text(encoding="utf-8"), parse_float=Decimal)
            )
        except (OSError, UnicodeDecodeError, tomli.TOMLDecodeError, ValidationError) as error:
            raise InputError(f"{file}: expected a hardware spec, got {error}") from None
        devices += [_described(file, hardware, one) for one in hardware.accelerators]
    return tuple(devices)


def _described(file: Path, hardware: Hardware, one: Accelerator) -> Device:
    facts = one.model_dump(exclude_none=True, exclude={"count", "compute_capability"})
    try:
        return Device(
            id=hardware.id,
            chip=one.name,
            generation=one.compute_capability or one.name,
            source=hardware.source,
            **facts,
        )
    except ValidationError as error:
        missing = ", ".join(str(fault["loc"][0]) for fault in error.errors())
        raise InputError(
            f"{file}: {one.name}: expected facts of the device to predict with, found no {missing}"
        ) from None
