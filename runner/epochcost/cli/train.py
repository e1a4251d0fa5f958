"""`epochcost train`: train a model on real data to an accuracy, while somebody watches.

What it took and cost in the end is said by ``trained``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from epochcost.cli import terminal
from epochcost.cli.bundled import own_catalogue
from epochcost.cli.interruption import INTERRUPTED, noted_signals
from epochcost.cli.terminal import RESULTS, ids, print_json, with_option_groups
from epochcost.cli.trained import (
    Payment,
    payment,
    repeats_as_json,
    show_elsewhere,
    show_repeats,
)
from epochcost.errors import InputError
from epochcost.execute.repeats import Follower, RepeatsRequest, repeat_folder, run_repeats
from epochcost.execute.training import TrainingRequest, prepare
from epochcost.measure.environment import detect_environment
from epochcost.measure.runtime import require_cuda
from epochcost.plan.trial import SessionSettings
from epochcost.results.plausibility import require_plausible
from epochcost.results.trainings import Repeat
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.study import Provider
from epochcost.train.aims import parse_target
from epochcost.train.loop import Recipe
from epochcost.train.state import Progress
from epochcost.units import seconds

_LIVE_SECONDS, _LINE_SECONDS = 0.25, 10.0


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
        return Recipe(
            training.schedule,
            training.optimizer.learning_rate,
            self.epochs or training.epochs,
            evaluate_every=0,
            aim=parse_target(self.target) if self.target else None,
            patience=self.patience,
        )

    @property
    def aim(self) -> str:
        """In words, for the record."""
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
    elsewhere: Annotated[
        bool,
        typer.Option("--elsewhere", help="Price as many steps on machines of known step time."),
    ] = False
    anew: Annotated[
        bool, typer.Option("--anew", help="Begin again what was begun or stored before.")
    ] = False
    as_is: terminal.AsIs = False


@with_option_groups
def train(
    what: What,
    where: Where,
    output: terminal.OutputFormat = "text",
) -> None:
    """Train a model on real data to an accuracy, and price that.

    Example: epochcost train --model digits-mlp --target "accuracy >= 0.9" --repeats 3
    """
    catalogue = own_catalogue()
    request = _request(what, where, catalogue)
    pay = payment(catalogue, where.hardware, where.price)
    with noted_signals() as stopped:
        progress = _Progress(request, pay, stopped)
        trainings = run_repeats(request, progress.follower)
    if stopped():
        progress.say(f"stopped; the state is saved in {progress.folder}: the same command goes on")
    if trainings is not None:
        chosen = [each for each in trainings.repeats if each.seed in request.seeds]
        if output == "json":
            print_json(repeats_as_json(trainings, chosen, pay))
        else:
            show_repeats(trainings, chosen, pay, request)
            if where.elsewhere:
                show_elsewhere(catalogue, where.results, trainings, chosen)
    if stopped():
        raise typer.Exit(INTERRUPTED)


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


class _Progress:
    """Shows a line that changes at a terminal, and one now and then anywhere else."""

    def __init__(self, request: RepeatsRequest, pay: Payment, stopped: Callable[[], bool]) -> None:
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
                self.say(f"goes on at step {step} from {self.folder}")
        live = self._console.is_terminal
        if now - self._shown >= (_LIVE_SECONDS if live else _LINE_SECONDS):
            self._shown = now
            spent = progress.times.total + now - self._begun
            self.say(self._words(progress, step, loss, spent), end="\r" if live else "\n")

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
        self.say(f"{how}seed {repeat.seed}: {_ended(repeat)}")

    def say(self, line: str, end: str = "\n") -> None:
        """Show a line in the place of the one that changes."""
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
