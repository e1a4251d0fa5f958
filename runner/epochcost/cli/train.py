"""`epochcost train`: train a model on real data to an accuracy, and show its time and cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from epochcost.analysis.accuracy import AccuracyTraining
from epochcost.cli import terminal
from epochcost.cli.bundled import own_catalogue
from epochcost.cli.interruption import INTERRUPTED, noted_signals
from epochcost.cli.terminal import RESULTS, ids, log, print_table, say, with_option_groups
from epochcost.cost.estimate import Unpriced
from epochcost.errors import InputError
from epochcost.execute.training import (
    Follower,
    RepeatsRequest,
    TrainingRequest,
    prepare,
    repeat_folder,
    run_repeats,
)
from epochcost.measure.environment import detect_environment
from epochcost.measure.runtime import require_cuda
from epochcost.plan.trial import SessionSettings
from epochcost.report.wording import render_cost
from epochcost.results.plausibility import require_plausible
from epochcost.results.trainings import Repeat, Spread
from epochcost.specs.catalogue import Catalogue, usual_price
from epochcost.specs.study import MOST_CPUS, Provider
from epochcost.train.loop import Recipe, parse_target
from epochcost.train.state import Progress
from epochcost.units import money, seconds, share

# The aim of a training without a target.
_ALL_EPOCHS = "all epochs"
_LINE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """Options for the training and its target."""

    model: Annotated[str, typer.Option(help="A model's id.", autocompletion=ids("models"))]
    dataset: Annotated[str | None, typer.Option(help="A data set's id. Default: the model's.")] = (
        None
    )
    target: Annotated[
        str | None, typer.Option(help='Result at which to stop: "accuracy >= 0.98", "loss <= 0.1".')
    ] = None
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Largest number of epochs. Default: the model's.")
    ] = None
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Examples in a step. Default: the model's.")
    ] = None
    evaluate_every: Annotated[
        int | None, typer.Option(min=1, help="Steps between evaluations. Default: an epoch.")
    ] = None
    repeats: Annotated[int, typer.Option(min=1, max=1000, help="Number of trainings.")] = 1
    seed: Annotated[int, typer.Option(min=0, max=10**9, help="Seed of the first training.")] = 0


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    """Options for the machine, the price and the folders."""

    provider: Annotated[Provider, typer.Option(help="The execution provider.")] = "cpu"
    hardware: terminal.HardwareId = "local"
    threads: Annotated[
        int, typer.Option(min=0, max=MOST_CPUS, help="CPU threads; 0: one for each core.")
    ] = 0
    price: Annotated[
        str | None,
        typer.Option(help="A price's id. Default: the machine's.", autocompletion=ids("prices")),
    ] = None
    data: Annotated[Path, typer.Option(help="The folder of data sets.")] = Path("data")
    to: Annotated[Path, typer.Option(help="The folder for saved states and weights.")] = Path(
        "trained"
    )
    results: terminal.ResultsFolder = RESULTS
    save_seconds: Annotated[float, typer.Option(min=0, help="Seconds between saved states.")] = 60.0
    anew: Annotated[
        bool, typer.Option("--anew", help="Ignore saved states and stored records.")
    ] = False
    as_is: terminal.AsIs = False


@with_option_groups
def train(work: WorkOptions, place: PlaceOptions) -> None:
    """Train a model on real data to an accuracy, and show the cost.

    Example: epochcost train --model digits-mlp --target "accuracy >= 0.9" --repeats 3
    """
    catalogue = own_catalogue()
    request = _request(work, place, catalogue)
    price = catalogue.price(place.price) if place.price else None
    with noted_signals() as stopped:
        printer = _ProgressPrinter(request, stopped)
        trainings = run_repeats(request, printer.follower)
    if stopped():
        say(
            f"stopped; the state is saved in {printer.folder}: the same command continues", err=True
        )
    if trainings is not None:
        chosen = tuple(each for each in trainings.repeats if each.seed in request.seeds)
        training = request.prepared.request
        outcome = AccuracyTraining(
            trainings.model_copy(update={"repeats": chosen}),
            training.model,
            training.dataset,
            request.hardware,
            price or usual_price(catalogue, place.hardware),
        )
        _show_trainings(outcome, request)
    if stopped():
        raise typer.Exit(INTERRUPTED)


def _request(work: WorkOptions, place: PlaceOptions, catalogue: Catalogue) -> RepeatsRequest:
    machine, model = catalogue.machine(place.hardware), catalogue.model(work.model)
    training = model.training
    if training is None:
        raise InputError(f"model {model.id}: expected a table [training], found none")
    recipe = Recipe(
        training.schedule,
        training.optimizer.learning_rate,
        work.epochs or training.epochs,
        evaluate_every=0,
        aim=parse_target(work.target) if work.target else None,
    )
    require_plausible(machine, detect_environment(), as_is=place.as_is)
    if place.provider == "cuda":
        require_cuda()
    name = work.dataset or model.dataset
    if name is None:
        raise InputError(f"model {model.id}: expected --dataset, since its spec names none")
    request = TrainingRequest(
        model,
        training,
        catalogue.dataset(name),
        work.batch_size or training.batch_sizes[0],
        place.provider,
        SessionSettings(threads=place.threads),
        work.evaluate_every,
        place.save_seconds,
    )
    return RepeatsRequest(
        prepare(request, recipe, catalogue, place.data),
        machine,
        range(work.seed, work.seed + work.repeats),
        work.target or _ALL_EPOCHS,
        place.to,
        place.results,
        place.anew,
    )


class _ProgressPrinter:
    def __init__(self, request: RepeatsRequest, stopped: Callable[[], bool]) -> None:
        self._request, self._printed_at = request, 0.0
        # When this run began to measure the repeat, less the seconds of the repeat in earlier runs.
        self._begun: float | None = None
        self.folder = repeat_folder(request, request.seeds[0])
        self.follower = Follower(self._begin, self._step, self._end, stopped)

    def _begin(self, seed: int) -> None:
        self.folder, self._begun = repeat_folder(self._request, seed), None

    def _step(self, progress: Progress, step: int, loss: float) -> None:
        now = time.monotonic()
        if self._begun is None:
            self._begun = now - progress.times.total
            if step > 1:
                log(f"continues at step {step} from {self.folder}")
        if now - self._printed_at < _LINE_SECONDS:
            return
        self._printed_at = now
        prepared = self._request.prepared
        last = prepared.recipe.epochs * prepared.feed.epoch_steps
        measured = f", accuracy {_accuracy(progress.curve[-1].accuracy)}" if progress.curve else ""
        spent = now - self._begun
        log(
            f"{self.folder.name}, step {step:,} of at most {last:,}: loss {loss:.4g}"
            f"{measured}; {seconds(spent)} so far, "
            f"about {seconds(spent / step * (last - step))} to go to the last step"
        )

    def _end(self, repeat: Repeat, stored: bool) -> None:
        last = repeat.curve[-1]
        reason = "aim met" if repeat.ending == "reached" else "all epochs done"
        log(
            f"{'stored before: ' if stored else ''}seed {repeat.seed}: {reason} at "
            f"step {repeat.steps:,}, accuracy {_accuracy(last.accuracy)}, loss {last.loss:.4g}, "
            f"{seconds(repeat.seconds)}"
        )


def _show_trainings(run: AccuracyTraining, request: RepeatsRequest) -> None:
    record = run.record
    rows = [
        (
            str(each.seed),
            each.ending,
            f"{each.steps:,}",
            f"{each.steps / record.epoch_steps:.1f}",
            seconds(each.seconds),
            render_cost(run.cost_of(each.seconds)),
            f"{each.curve[-1].loss:.4g}",
            _accuracy(each.curve[-1].accuracy),
        )
        for each in record.repeats
    ]
    header = ("seed", "ended by", "steps", "epochs", "time", "cost", "loss", "accuracy")
    print_table(header, rows, drop=("epochs", "loss"))
    reached = sum(each.ending == "reached" for each in record.repeats)
    aimed = record.aim != _ALL_EPOCHS
    counted = f"{reached} of {len(record.repeats)} reached it; " if aimed else ""
    say(f"{record.aim}: {counted}time {_interval(run.seconds, seconds)}")
    say(_cost_sentence(run))
    say(f"accuracy {_interval(run.accuracy, _accuracy)}")
    waiting = sum(each.waiting_seconds for each in record.repeats)
    say(f"waiting for data: {share(waiting / sum(each.seconds for each in record.repeats))}")
    weights = repeat_folder(request, run.counted[0].seed) / "model.onnx"
    missing = ": not there any more, or trained with another --to; --anew trains them again"
    say(f"weights: {weights}{'' if weights.exists() else missing}")


def _cost_sentence(run: AccuracyTraining) -> str:
    cost = run.cost_of(run.seconds.mean)
    if isinstance(cost, Unpriced):
        return f"no cost: {cost.reason}"
    assert run.cost is not None, "the price of one repeat is applicable to all"
    currency, assumed = cost.currency, ", an assumed price" if cost.assumed else ""
    amount = _interval(run.cost, lambda value: money(Decimal(repr(value)), currency))
    return f"cost {amount} at {cost.price_id}{assumed}"


def _accuracy(value: float) -> str:
    return share(value, decimals=2)


def _interval(spread: Spread, text: Callable[[float], str]) -> str:
    if spread.half_width is None:
        return text(spread.mean)
    return f"{text(spread.mean)} ± {text(spread.half_width)} (95 %)"
