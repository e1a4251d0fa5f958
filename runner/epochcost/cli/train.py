"""`epochcost train`: train a model on real data to an accuracy, and say what that took and cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from epochcost.cli import terminal
from epochcost.cli.bundled import own_catalogue
from epochcost.cli.interruption import INTERRUPTED, noted_signals
from epochcost.cli.terminal import RESULTS, ids, print_json, print_table, with_option_groups
from epochcost.cli.train_interrupted import (
    interrupted_as_json,
    show_interrupted,
    train_interrupted,
)
from epochcost.cost import Usage
from epochcost.cost import quote as bill
from epochcost.errors import InputError, UsageError
from epochcost.execute.repeats import Follower, RepeatsRequest, repeat_folder, run_repeats
from epochcost.execute.training import TrainingRequest, prepare
from epochcost.measure.environment import detect_environment
from epochcost.measure.runtime import require_cuda
from epochcost.plan.trial import SessionSettings
from epochcost.results.plausibility import require_plausible
from epochcost.results.trainings import Repeat, Spread, Trainings, spread
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.price import Price
from epochcost.specs.study import Provider
from epochcost.train.aims import Stability, parse_target
from epochcost.train.datasets import best_result
from epochcost.train.loop import Recipe
from epochcost.train.state import Progress
from epochcost.units import money, plain, seconds, share

_LIVE_SECONDS, _LINE_SECONDS = 0.25, 10.0
_PLANS = ("on-demand", "owned")


@dataclass(frozen=True, slots=True)
class What:
    """The options that say what is trained, and until when."""

    model: Annotated[str, typer.Option(help="A model's id.", autocompletion=ids("models"))]
    dataset: Annotated[str | None, typer.Option(help="A data set's id. Default: the model's.")] = (
        None
    )
    target: Annotated[
        str | None, typer.Option(help='Stop there: "accuracy >= 0.98", "loss <= 0.1".')
    ] = None
    until: Annotated[
        Literal["stable", "end"],
        typer.Option(help="Stop when the curve is stable, or after the recipe's epochs."),
    ] = "end"
    epochs: Annotated[
        int | None, typer.Option(min=1, help="At most so many. Default: the recipe's.")
    ] = None
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Examples in a step. Default: the recipe's.")
    ] = None
    evaluate_every: Annotated[
        int | None, typer.Option(min=1, help="Steps between evaluations. Default: an epoch's.")
    ] = None
    patience: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many evaluations without a better one.")
    ] = None
    repeats: Annotated[int, typer.Option(min=1, max=1000, help="How often, by seeds.")] = 1
    seed: Annotated[int, typer.Option(min=0, max=10**9, help="The first repeat's seed.")] = 0

    def recipe(self, catalogue: Catalogue) -> Recipe:
        """How it is trained; raises InputError where the model has no recipe."""
        training = catalogue.model(self.model).training
        if training is None:
            raise InputError(f"model {self.model}: expected a table [training], found none")
        if self.target is not None and self.until == "stable":
            raise UsageError("train: expected either --target or --until stable, got both")
        aim = parse_target(self.target) if self.target else None
        return Recipe(
            training.schedule,
            training.optimizer.learning_rate,
            self.epochs or training.epochs,
            evaluate_every=0,
            aim=Stability() if self.until == "stable" else aim,
            patience=self.patience,
        )

    @property
    def aim(self) -> str:
        """In words, for the record."""
        if self.until == "stable":
            return "stable within 0.5 points"
        return self.target or "all epochs"


@dataclass(frozen=True, slots=True)
class Where:
    """The options that say on what of this machine, at which price, and where things are kept."""

    provider: Annotated[Provider, typer.Option(help="The execution provider.")] = "cpu"
    hardware: terminal.HardwareId = "local"
    threads: Annotated[int, typer.Option(min=0, help="0: as many as there are cores.")] = 0
    price: Annotated[
        str | None,
        typer.Option(help="A price's id. Default: the machine's.", autocompletion=ids("prices")),
    ] = None
    data: Annotated[Path, typer.Option(help="The folder of data sets.")] = Path("data")
    to: Annotated[Path, typer.Option(help="The folder for saved states and weights.")] = Path(
        "trained"
    )
    results: terminal.ResultsFolder = RESULTS
    save_seconds: Annotated[
        float, typer.Option(min=0, help="How often the state is saved, in seconds.")
    ] = 60.0
    anew: Annotated[
        bool, typer.Option("--anew", help="Begin again what was begun or stored before.")
    ] = False
    as_is: terminal.AsIs = False


@with_option_groups
def train(
    what: What,
    where: Where,
    simulate_interruptions: Annotated[
        float | None,
        typer.Option(help="Kill it so often an hour, at random, and say what that cost."),
    ] = None,
    output: terminal.OutputFormat = "text",
) -> None:
    """Train a model on real data to an accuracy, and price that."""
    catalogue = own_catalogue()
    request = _request(what, where, catalogue)
    pay = _payment(where, catalogue)
    if simulate_interruptions is not None:
        _interrupt(request, pay, simulate_interruptions, output)
        return
    with noted_signals() as stopped:
        progress = _Progress(request, pay, stopped)
        trainings = run_repeats(request, progress.follower)
    if stopped():
        typer.echo(
            f"stopped; the state is saved in {progress.folder}: the same command goes on", err=True
        )
    if trainings is not None:
        chosen = [each for each in trainings.repeats if each.seed in request.seeds]
        if output == "json":
            print_json(_as_json(trainings, chosen, pay), indent=1)
        else:
            _show(trainings, chosen, pay, request)
    if stopped():
        raise typer.Exit(INTERRUPTED)


def _interrupt(
    request: RepeatsRequest, pay: _Payment, per_hour: float, output: terminal.OutputFormat
) -> None:
    """One repeat, killed again and again; nothing of it is stored."""
    if per_hour <= 0 or len(request.seeds) > 1:
        demand = "a rate above 0 and one repeat"
        got = f"{per_hour:g} an hour and {len(request.seeds)}"
        raise UsageError(f"--simulate-interruptions: expected {demand}, got {got}")
    seed = request.seeds[0]
    folder = repeat_folder(request, seed).with_name(f"seed-{seed}-interrupted")
    found = train_interrupted(request.prepared, seed, folder, per_hour)
    if output == "json":
        print_json(interrupted_as_json(found, per_hour), indent=1)
    else:
        show_interrupted(found, per_hour, pay.words)


def _request(what: What, where: Where, catalogue: Catalogue) -> RepeatsRequest:
    machine, model, recipe = (
        catalogue.machine(where.hardware),
        catalogue.model(what.model),
        what.recipe(catalogue),
    )
    require_plausible(machine, detect_environment(), as_is=where.as_is)
    if where.provider == "cuda":
        require_cuda()
    assert model.training is not None, "a recipe was made of it"
    name = what.dataset or model.dataset
    if name is None:
        raise InputError(f"model {model.id}: expected --dataset, since its spec names none")
    request = TrainingRequest(
        model,
        model.training,
        catalogue.dataset(name),
        what.batch_size or model.training.batch_sizes[0],
        where.provider,
        SessionSettings(threads=where.threads),
        what.evaluate_every,
        where.save_seconds,
    )
    return RepeatsRequest(
        prepare(request, recipe, catalogue, where.data),
        machine,
        range(what.seed, what.seed + what.repeats),
        what.aim,
        where.to,
        where.results,
        where.anew,
    )


@dataclass(frozen=True)
class _Payment:
    """A price and what of a machine it is of; None: no price is known."""

    price: Price | None
    vcpus: int | None

    def cost(self, used_seconds: float) -> Decimal | None:
        """The bill of so much time as a job of its own."""
        if self.price is None or used_seconds <= 0:
            return None
        used = Usage(Decimal(repr(used_seconds)), vcpus=self.vcpus)
        return bill(self.price, used).total

    def words(self, used_seconds: float) -> str:
        """For a person."""
        cost = self.cost(used_seconds)
        if cost is None or self.price is None:
            return "no price"
        return money(cost, self.price.currency)


def _payment(where: Where, catalogue: Catalogue) -> _Payment:
    """At the price that was named, else the machine's that is on demand or owned."""
    if where.price is not None:
        price: Price | None = catalogue.price(where.price)
    else:
        known = current_prices(catalogue.prices_of(where.hardware))
        fitting = [each for each in known if each.plan in _PLANS]
        price = min(fitting, key=lambda each: _PLANS.index(each.plan), default=None)
    machine = catalogue.machine(where.hardware)
    return _Payment(price, machine.vcpus or detect_environment().logical_cpus)


class _Progress:
    """Shows a line that changes at a terminal, and one now and then anywhere else."""

    def __init__(self, request: RepeatsRequest, pay: _Payment, stopped: Callable[[], bool]) -> None:
        self._request, self._pay, self._console = request, pay, Console(stderr=True)
        self._shown, self._number, self._begun, self._since = 0.0, 0, 0.0, 0
        self.folder = repeat_folder(request, request.seeds[0])
        self.follower = Follower(self._begin, self._tell, self._end, stopped)

    def _begin(self, seed: int) -> None:
        self._number, self._begun = list(self._request.seeds).index(seed) + 1, time.monotonic()
        self.folder, self._since = repeat_folder(self._request, seed), -1

    def _tell(self, progress: Progress, step: int, loss: float) -> None:
        now = time.monotonic()
        if self._since < 0:
            self._since, self._begun = step - 1, now
            if step > 1:
                self._say(f"goes on at step {step} from {self.folder}", end="\n")
        live = self._console.is_terminal
        if now - self._shown >= (_LIVE_SECONDS if live else _LINE_SECONDS):
            self._shown = now
            spent = progress.times.total + now - self._begun
            self._say(self._words(progress, step, loss, spent), end="\r" if live else "\n")

    def _words(self, progress: Progress, step: int, loss: float, spent: float) -> str:
        prepared = self._request.prepared
        last = prepared.recipe.epochs * prepared.feed.epoch_steps
        accuracy = progress.curve[-1].accuracy if progress.curve else None
        known = "" if accuracy is None else f", accuracy {accuracy:.1%}"
        left = spent / max(1, step) * (last - step)
        return (
            f"repeat {self._number} of {len(self._request.seeds)}, step {step:,} of at most "
            f"{last:,}: loss {loss:.4g}{known}; {self._pay.words(spent)} so far, at most "
            f"{self._pay.words(left)} and {seconds(left)} to go"
        )

    def _end(self, repeat: Repeat, stored: bool) -> None:
        how = "stored before: " if stored else ""
        self._say(f"{how}seed {repeat.seed}: {_ended(repeat)}", end="\n")

    def _say(self, line: str, end: str) -> None:
        if self._console.is_terminal:
            line = line[: self._console.width - 1].ljust(self._console.width - 1)
        self._console.print(line, end=end, markup=False, highlight=False, soft_wrap=True)


def _ended(repeat: Repeat) -> str:
    last = repeat.curve[-1]
    measured = f"loss {last.loss:.4g}"
    if last.accuracy is not None:
        measured = f"accuracy {last.accuracy:.2%}, {measured}"
    why = {"reached": "aim met", "epochs": "all epochs done", "patience": "no longer better"}
    return f"{why[repeat.ending]} at step {repeat.steps:,}, {measured}, {seconds(repeat.seconds)}"


def _show(
    trainings: Trainings, repeats: Sequence[Repeat], pay: _Payment, request: RepeatsRequest
) -> None:
    print_table(
        ("seed", "ended by", "steps", "epochs", "time", "cost", "loss", "accuracy", "stable from"),
        [_row(trainings, each, pay) for each in repeats],
        drop=("epochs", "loss"),
    )
    typer.echo("\n".join(_summary(trainings, repeats, pay, request)))


def _row(trainings: Trainings, repeat: Repeat, pay: _Payment) -> tuple[str, ...]:
    last, stable = repeat.curve[-1], repeat.stable
    known = "-" if stable is None else f"{stable.step:,.0f}"
    return (
        str(repeat.seed),
        repeat.ending,
        f"{repeat.steps:,}",
        f"{repeat.steps / trainings.epoch_steps:.1f}",
        seconds(repeat.seconds),
        pay.words(repeat.seconds),
        f"{last.loss:.4g}",
        "-" if last.accuracy is None else f"{last.accuracy:.2%}",
        known + ("*" if stable is not None and stable.after_drop is not None else ""),
    )


def _summary(
    trainings: Trainings, repeats: Sequence[Repeat], pay: _Payment, request: RepeatsRequest
) -> list[str]:
    reached = [each for each in repeats if each.ending == "reached"]
    counted = reached or repeats
    time_spent, costs = spread([each.seconds for each in counted]), _costs(counted, pay)
    what = f"{len(reached)} of {len(repeats)} reached it; " if reached else ""
    lines = [f"{trainings.aim}: {what}time {_spread_words(time_spent, seconds)}"]
    if costs is not None and pay.price is not None:
        currency = pay.price.currency
        spent = _spread_words(costs, lambda value: money(Decimal(repr(value)), currency))
        assumed = ", an assumed price" if pay.price.assumed else ""
        lines += [f"cost {spent} at {pay.price.id}{assumed}"]
    accuracies = [each.curve[-1].accuracy for each in repeats]
    known = [each for each in accuracies if each is not None]
    if known:
        lines += [f"accuracy {_spread_words(spread(known), lambda value: f'{value:.2%}')}"]
    best = best_result(request.prepared.request.dataset)
    if best is not None:
        loss = spread([each.curve[-1].loss for each in repeats]).mean
        lines += [
            f"the best that its source allows: loss {best.loss:.4f}, accuracy {best.accuracy:.2%}; "
            f"the loss here is {loss / best.loss - 1:+.1%}"
            if best.loss
            else "its source has no noise"
        ]
    if any(each.stable is not None and each.stable.after_drop is not None for each in repeats):
        lines += ["* a plateau that only followed a drop of the learning rate"]
    waiting = sum(each.waiting_seconds for each in repeats)
    lines += [f"waiting for data: {share(waiting / sum(each.seconds for each in repeats))}"]
    lines += [f"weights: {repeat_folder(request, counted[0].seed) / 'model.onnx'}"]
    return lines


def _costs(repeats: Sequence[Repeat], pay: _Payment) -> Spread | None:
    costs = [pay.cost(each.seconds) for each in repeats]
    known = [float(each) for each in costs if each is not None]
    return spread(known) if known else None


def _spread_words(found: Spread, words: Callable[[float], str]) -> str:
    if found.half_width is None:
        return words(found.mean)
    return f"{words(found.mean)} ± {words(found.half_width)} (95 %)"


def _as_json(trainings: Trainings, repeats: Sequence[Repeat], pay: _Payment) -> dict[str, Any]:
    price = pay.price
    return {
        "model": trainings.model,
        "dataset": trainings.dataset,
        "aim": trainings.aim,
        "price": None if price is None else price.id,
        "currency": None if price is None else price.currency,
        "repeats": [
            {
                **each.model_dump(mode="json", exclude={"curve"}),
                "seconds": each.seconds,
                "cost": None if (cost := pay.cost(each.seconds)) is None else plain(cost),
                "loss": each.curve[-1].loss,
                "accuracy": each.curve[-1].accuracy,
            }
            for each in repeats
        ],
        "time": spread([each.seconds for each in repeats]),
        "cost": _costs(repeats, pay),
    }
