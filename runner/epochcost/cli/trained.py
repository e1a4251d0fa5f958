"""The end of `epochcost train`: what repeats took and cost here, and what they would elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from epochcost.analysis.accuracy import elsewhere
from epochcost.analysis.answers import times_of
from epochcost.cli.bundled import inputs_to_read
from epochcost.cli.terminal import print_table, say
from epochcost.cost import Usage
from epochcost.cost import quote as bill
from epochcost.execute.repeats import RepeatsRequest, repeat_folder
from epochcost.measure.environment import detect_environment
from epochcost.results.trainings import Repeat, Spread, Trainings, spread
from epochcost.specs.catalogue import Catalogue, usual_price
from epochcost.specs.price import Price
from epochcost.train.datasets import best_result
from epochcost.units import money, money_range, plain, seconds, share

_MOST_MACHINES = 5


@dataclass(frozen=True)
class Payment:
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


def payment(catalogue: Catalogue, hardware: str, named: str | None) -> Payment:
    """At the price that was named, else the machine's that is on demand or owned."""
    price = catalogue.price(named) if named else usual_price(catalogue, hardware)
    machine = catalogue.machine(hardware)
    return Payment(price, machine.vcpus or detect_environment().logical_cpus)


def show_repeats(
    trainings: Trainings, repeats: Sequence[Repeat], pay: Payment, request: RepeatsRequest
) -> None:
    """A row for each repeat, then what they come to together."""
    print_table(
        ("seed", "ended by", "steps", "epochs", "time", "cost", "loss", "accuracy"),
        [_row(trainings, each, pay) for each in repeats],
        drop=("epochs", "loss"),
    )
    say("\n".join(_summary(trainings, repeats, pay, request)))


def _row(trainings: Trainings, repeat: Repeat, pay: Payment) -> tuple[str, ...]:
    last = repeat.curve[-1]
    return (
        str(repeat.seed),
        repeat.ending,
        f"{repeat.steps:,}",
        f"{repeat.steps / trainings.epoch_steps:.1f}",
        seconds(repeat.seconds),
        pay.words(repeat.seconds),
        f"{last.loss:.4g}",
        "-" if last.accuracy is None else f"{last.accuracy:.2%}",
    )


def _summary(
    trainings: Trainings, repeats: Sequence[Repeat], pay: Payment, request: RepeatsRequest
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
        beyond = f" ({loss / best.loss - 1:+.1%} here)" if best.loss else ""
        allows = f"loss {best.loss:.4f}{beyond}, accuracy {best.accuracy:.2%}"
        lines += [f"the best that its source allows: {allows}"]
    waiting = sum(each.waiting_seconds for each in repeats)
    lines += [f"waiting for data: {share(waiting / sum(each.seconds for each in repeats))}"]
    lines += [f"weights: {repeat_folder(request, counted[0].seed) / 'model.onnx'}"]
    return lines


def show_elsewhere(
    catalogue: Catalogue, results: Path, trainings: Trainings, repeats: Sequence[Repeat]
) -> None:
    """The cheapest machines for as many steps, where step times are known; else that none is."""
    times = times_of(inputs_to_read(results, catalogue), [catalogue.model(trainings.model).id])
    known = [one for one in times.observations if one.stack == "onnxruntime"]
    listed = elsewhere(catalogue, trainings, repeats, known)
    say(
        "elsewhere, as many steps at each machine's own step time:"
        if listed
        else "elsewhere: no step time of this model at this batch size is known"
    )
    for row in listed[:_MOST_MACHINES]:
        cost, time = row.estimate("full"), row.time("full")
        assert cost is not None, "only rows with a cost are listed"
        assert time is not None, "a cost is of a time"
        place = f"{row.observed.machine.name}, {row.plan}"
        took = f"{money_range(cost.low, cost.high, cost.currency)} in {seconds(float(time.mean))}"
        say(f"  {took} on {place} ({row.mark})")


def _costs(repeats: Sequence[Repeat], pay: Payment) -> Spread | None:
    costs = [pay.cost(each.seconds) for each in repeats]
    known = [float(each) for each in costs if each is not None]
    return spread(known) if known else None


def _spread_words(found: Spread, words: Callable[[float], str]) -> str:
    if found.half_width is None:
        return words(found.mean)
    return f"{words(found.mean)} ± {words(found.half_width)} (95 %)"


def repeats_as_json(
    trainings: Trainings, repeats: Sequence[Repeat], pay: Payment
) -> dict[str, Any]:
    """For a machine: every number of the record but the curves, with costs as exact decimals."""
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
    }
