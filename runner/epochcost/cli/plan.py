"""`epochcost plan`: show which trials a run would measure here, and why it omits others."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Literal

import typer

from epochcost.cli import terminal
from epochcost.cli.bundled import catalogue_to_read
from epochcost.cli.terminal import print_table, say, with_option_groups
from epochcost.cost.estimate import Estimate, MachineTime, Time
from epochcost.errors import CapabilityError, EpochcostError, InputError, UsageError
from epochcost.execute.graph_facts import GraphFacts
from epochcost.execute.kernels import check_trials
from epochcost.execute.planning import gpu_descriptions, plan_elsewhere, plan_run, room_bytes
from epochcost.execute.sizes import cached_size
from epochcost.execute.sizing import ModelSize, declared_batch_sizes
from epochcost.measure.gpus import shown_gpus
from epochcost.plan.make import Plan, RunRequest
from epochcost.plan.work import Requests
from epochcost.specs.catalogue import Catalogue, usual_price
from epochcost.specs.model import Model
from epochcost.specs.study import AT_HAND, MOST_BATCH, MOST_CPUS, MOST_ROUNDS, Provider
from epochcost.statistics import group_by
from epochcost.units import memory, money, render_count, scientific, seconds
from onnxstep.graphs.cuda_kernels import KernelCheck

# To load libraries and a small graph, and to warm up; on CUDA, as on an H100 (docs/cuda.md).
_START_SECONDS = {"cpu": 2, "cuda": 8}


@dataclasses.dataclass(frozen=True, slots=True)
class Selection:
    """The options that select the trials to plan or run."""

    study: terminal.Studies = None
    model: terminal.Models = None
    provider: Annotated[
        Provider | None,
        typer.Option(help="Only this execution provider; an error if it is unusable."),
    ] = None
    hardware: terminal.HardwareId = "local"
    quick: terminal.Quick = False
    as_is: terminal.AsIs = False
    device: Annotated[
        int | None,
        typer.Option(min=0, help="CUDA's number of the GPU. Default: the study's, or 0."),
    ] = None
    vcpus: Annotated[
        str | None,
        typer.Option(
            help="Pin trials on the CPU to these numbers of CPUs: 1,2,4. Default: the studies' "
            "vcpus."
        ),
    ] = None
    batch_size: Annotated[
        str | None,
        typer.Option(
            metavar="auto|N",
            help="This batch size, or growing ones until memory runs out. Default: the studies' "
            "sizes.",
        ),
    ] = None
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_ROUNDS,
            help="Rounds over all trials, each in another order. Default: the study's.",
        ),
    ] = None
    trial: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Only the trial with this id; repeatable."),
    ] = None

    def request(self) -> RunRequest:
        """Make a request; InputError for invalid values, UsageError if ``device`` has no effect."""
        if self.provider == "cpu" and self.device is not None:
            raise UsageError("--device: cannot be combined with --provider cpu, which uses no GPU")
        return RunRequest(
            studies=tuple(self.study or ()),
            models=tuple(self.model or ()),
            providers=(self.provider,) if self.provider else (),
            hardware=self.hardware,
            quick=self.quick,
            as_is=self.as_is,
            device=self.device,
            vcpus=_parse_vcpus(self.vcpus),
            batch_size=batch_size_of(self.batch_size),
            rounds=self.rounds,
            trials=tuple(self.trial or ()),
        )


def _parse_vcpus(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    counts = [int(part) if part.isdecimal() and len(part) < 5 else 0 for part in parts]
    if len(set(counts)) < len(counts) or not all(1 <= count <= MOST_CPUS for count in counts):
        raise InputError(
            f"--vcpus: expected different counts of CPUs from 1 to {MOST_CPUS}, such as 1,2,4, "
            f"got {text!r:.40}"
        )
    return tuple(counts)


def batch_size_of(text: str | None) -> int | Literal["auto"] | None:
    """Parse ``--batch-size``; raises InputError if ``text`` is neither "auto" nor a size."""
    if text is None:
        return None
    if text == "auto":
        return "auto"
    if not (text.isdecimal() and len(text) < 9 and 1 <= int(text) <= MOST_BATCH):
        raise InputError(
            f"--batch-size: expected auto, or a size from 1 to {MOST_BATCH}, got {text!r:.40}"
        )
    return int(text)


@with_option_groups
def plan(
    selection: Selection,
    *,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also print the memory of models by batch size.")
    ] = False,
    wide: terminal.WideTable = False,
) -> None:
    """Show the trials that `run` would measure here.

    Example: epochcost plan --study starter --verbose
    """
    catalogue, hardware = catalogue_to_read(), selection.hardware
    try:
        planned = plan_run(catalogue, selection.request())
    except CapabilityError as error:
        if selection.provider == "cuda":
            elsewhere = plan_elsewhere(GraphFacts(catalogue), selection.request())
            _show_missing_cuda_kernels(catalogue, elsewhere)
            if hardware != AT_HAND and elsewhere.every_trial:
                _show(elsewhere, catalogue, hardware, wide=wide)
                say(f"planned from the spec of {hardware}; this machine cannot run it: {error}")
                return
        raise
    _show(planned, catalogue, hardware, wide=wide)
    if verbose:
        studies = map(catalogue.study, selection.study or catalogue.studies)
        models = selection.model or itertools.chain.from_iterable(study.models for study in studies)
        _show_model_memory(catalogue, sorted(set(models)))


def _show_missing_cuda_kernels(catalogue: Catalogue, plan: Plan) -> None:
    checks = dict(check_trials(catalogue, plan.every_trial))
    built = {title: c for title, c in checks.items() if isinstance(c, KernelCheck)}
    nodes = sum(check.nodes for check in built.values())
    failed = {title: check for title, check in built.items() if check.on_host}
    graphs = render_count(len(built), "graph")
    if failed:
        say(f"CUDA kernels: {len(failed)} of {graphs} would use the CPU:")
    elif nodes:
        say(f"CUDA kernels: all {nodes:,} nodes of {graphs} have one")
    for title, check in failed.items():
        say(f"  {title}: {check}")
    for title, outcome in checks.items():
        if title not in built:
            say(f"left out: {title}: {outcome}")


def show_extent(plan: Plan, catalogue: Catalogue, hardware: str) -> None:
    """Print how long a plan without sweeps takes, what it costs at a known price, and the GPUs."""
    timing = float(sum(trial.expected_seconds for trial in plan.trials))
    processes = [(plan.rounds.get(trial.id, 1), trial.provider) for trial in plan.trials]
    starts = sum(count for count, _ in processes)
    starting = sum(count * _START_SECONDS[provider] for count, provider in processes)
    # Requests are sent until their rate is proved, however long that takes.
    bound = "about" if any(isinstance(trial.work, Requests) for trial in plan.trials) else "at most"
    trials = render_count(len(plan.trials), "trial")
    extent = f"{trials} on {hardware}, {bound} {seconds(timing)} of timing"
    price, machine = usual_price(catalogue, hardware), catalogue.machine(hardware)
    if price is not None and plan.trials:
        whole = Time.exact(Decimal(repr(timing + starting)))
        cost = MachineTime(whole, machine.vcpus, machine.device == "cuda").cost(price)
        if isinstance(cost, Estimate):
            amount = money(cost.mean, cost.currency)
            counted = render_count(starts, "process start")
            assumed = ", assumed" if price.assumed else ""
            extent += f"; with {counted} about {amount} ({price.plan_text}{assumed})"
    if plan.trials or not plan.sweeps:
        say(extent)
    if plan.sweeps:
        sweeps = render_count(len(plan.sweeps), "sweep")
        say(f"{sweeps} of batch sizes on {hardware}: time and cost depend on the number of sizes")
    for line in gpu_descriptions(shown_gpus()):
        say(line)


def _show(plan: Plan, catalogue: Catalogue, hardware: str, *, wide: bool) -> None:
    show_extent(plan, catalogue, hardware)
    if plan.trials:
        print_table(
            ("trial", "rounds", "budget", "id"),
            [
                (row.title, str(plan.rounds.get(row.id, 1)), f"{row.expected_seconds} s", row.id)
                for row in plan.trials
            ],
            drop=("id",),
            wide=wide,
        )
    for sweep in plan.sweeps:
        budget = seconds(float(sweep.trial.expected_seconds))
        rounds = f" in {sweep.rounds} rounds" if sweep.rounds > 1 else ""
        say(f"sweep {sweep.id}, {budget} a size{rounds}: {sweep.title}")
    for reason, works in group_by(plan.left_out, lambda each: each.reason).items():
        say("\n".join([f"left out, because {reason}:", *(f"  {work.what}" for work in works)]))


def _show_model_memory(catalogue: Catalogue, models: Sequence[str]) -> None:
    room = room_bytes()
    limits = ", ".join(f"{provider} {memory(limit)}" for provider, limit in room.items())
    say(f"\nMemory by batch size; a trial may take here: {limits}")
    for name in models:
        for line in _memory_lines(catalogue, catalogue.model(name), room):
            say(line)


def _memory_lines(
    catalogue: Catalogue, model: Model, room: Mapping[Provider, int]
) -> Iterator[str]:
    if model.declared is not None:
        total = scientific(float(model.declared.training_flops))
        yield f"{model.id}: no graph; {total} FLOPs train it, 6 for each parameter and token"
    elif model.graph is None:
        yield f"{model.id}: no graph; its times are predicted from [decoder]"
    else:
        try:
            size = cached_size(catalogue, model, declared_batch_sizes(model))
        except EpochcostError as error:
            yield f"{model.id}: not counted: {error}"
        else:
            yield from _size_lines(model.id, size, room)


def _size_lines(name: str, size: ModelSize, room: Mapping[Provider, int]) -> Iterator[str]:
    for mode, counted in size.items():
        if isinstance(counted, str):
            yield f"{name} {mode}: not counted: {counted}"
            continue
        for provider, limit in room.items():
            needed = ((batch, each.memory_bytes(provider)) for batch, each in counted.items())
            batches = (
                f"{batch}: {memory(amount)}{' (no room here)' if amount > limit else ''}"
                for batch, amount in needed
            )
            yield f"{name} {mode} {provider}: {', '.join(batches)}"
