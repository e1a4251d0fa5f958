"""Make the home page: three answers for a model and a job, such as the cheapest machine.

The build writes the answers for all models and jobs to `data/home.js`; browsers only show them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

from epochcost.analysis.observations import Workload
from epochcost.analysis.token_answers import TokenAnswer
from epochcost.analysis.tokens import MOST_BUSY
from epochcost.cost.estimate import Estimate
from epochcost.report import wording
from epochcost.report.escape import one_line
from epochcost.report.list_prices import list_prices, most_rented, moved_prices
from epochcost.report.pages.calculator import questions
from epochcost.report.pages.model import embeds, job_figure, render_training
from epochcost.report.pages.page import TUNING, Job, Page, Report, html, machine_uri, workload_uri
from epochcost.report.pages.workload import by_group
from epochcost.report.ranking import Contender, Contest
from epochcost.report.tables import as_script
from epochcost.units import money, render_software, share

URI = "data/home.js"
# Shown first if it is among the models: serving it is a question of many readers.
_FIRST = "llama-3.1-8b"
_MOST_MOVED = 6
_MOST_GPUS = 8
_JOBS: Mapping[Job, str] = {
    "tokens": "serve it: a million tokens",
    "lora": "fine-tune it by LoRA",
    "train": "train or fine-tune it once",
    "serve": "answer a million requests",
}
# A million requests are a batch to the calculator, which serves requests as they come.
_IN_CALCULATOR: Mapping[Job, str] = {"serve": "batch", "lora": "train"}
_TITLES = {"cheapest": "Cheapest", "balanced": "Best trade-off", "fastest": "Fastest"}
_UNIT = "a million tokens"
_EMBED = "embed a million documents"
_LEFT_OUT = (
    " Not included: starting the program, loading libraries, and waiting for data that are read "
    "more slowly than the machine computes."
)


@dataclass(frozen=True, slots=True)
class Card:
    """A card with one of the three answers as text.

    ``page`` is the address of a machine or model; ``between`` has ranges of cost and perhaps time.
    """

    title: str
    cost: str
    time: str
    machine: str
    page: str
    plan: str
    software: str = ""
    mark: str = ""
    between: str = ""


def pages(report: Report) -> Iterator[Page]:
    """Yield the home page."""
    contests = {workload: jobs for workload, jobs in report.contests.items() if jobs}
    first = _first_shown_workload(contests)
    job: Job = next(name for name in _JOBS if name in contests[first]) if first else "train"
    kinds = [observed.kind for observed in report.observations]
    yield Page(
        uri="index.md",
        title="What does it cost to train or run your model?",
        template="home.md.jinja",
        description="The cheapest and the fastest machine for a model, at current list prices.",
        context={
            "models": by_group(report, contests),
            "first": first,
            "job": job,
            "jobs": {name: _render_job(report, first, name) for name in _JOBS} if first else _JOBS,
            "questions": questions(report),
            "answer": _answer_json(report, first, job, contests[first][job]) if first else None,
            "newest": max(
                (row.price.as_of for row in report.rows if row.price and not row.price.assumed),
                default=None,
            ),
            "counts": {kind: kinds.count(kind) for kind in ("measured", "published", "predicted")},
            "report": report,
            "chips": most_rented([*list_prices(report.catalogue).values()], _MOST_GPUS),
            "moved": moved_prices(report.catalogue)[:_MOST_MOVED],
            "trust": report.trust.all.get("accelerator") if report.trust else None,
            "unseen": report.trust.all.get("source") if report.trust else None,
            "data": URI,
        },
        figures={"answer": job_figure(report, first, job) if first else None},
    )


def _first_shown_workload(contests: Mapping[Workload, Mapping[Job, Contest]]) -> Workload | None:
    return max(
        contests,
        key=lambda workload: (
            workload.is_model and workload.id == _FIRST,
            sum(len(contest.competing) for contest in contests[workload].values()),
        ),
        default=None,
    )


def script(report: Report) -> str:
    """Render the answers for all models and jobs as a script, which any page can load."""
    data = {
        f"{workload.key}/{job}": _answer_json(report, workload, job, contest)
        for workload, jobs in report.contests.items()
        for job, contest in jobs.items()
    }
    return as_script("epochcostHome", data)


def _answer_json(report: Report, workload: Workload, job: Job, contest: Contest) -> dict[str, Any]:
    figure = job_figure(report, workload, job)
    page = html(workload_uri(workload))
    row, tokens = contest.cheapest.row, report.tokens.get(workload.id)
    software = f"&software={row.observed.stack}" if row else ""
    key = f"lora/{workload.key}" if job == "lora" else workload.key
    texts = "&examples=1000000" if embeds(report, workload) and job == "serve" else ""
    query = f"model={key}&job={_IN_CALCULATOR.get(job, job)}{software}{texts}&prices="
    if job == "tokens" and tokens is not None:
        cards = _token_cards(tokens, contest.cheapest, page)
    else:
        cards = _answer_cards(contest)
    return {
        "page": page,
        # Whether this is the main job of an embedding model.
        "main": bool(texts),
        "job": _render_job(report, workload, job),
        # Where readers enter their own numbers.
        "own": f"{page}#your-traffic" if job == "tokens" else f"calculator.html?{query}",
        "about": one_line(
            _render_job_size(report, workload, job, contest) + _unconfirmed_price_note(contest)
        ),
        "figure": figure.id if figure else "",
        "title": figure.title if figure else "",
        "source": figure.source if figure else "",
        "cards": [asdict(card) for card in cards],
    }


def _render_job_size(report: Report, workload: Workload, job: Job, contest: Contest) -> str:
    if job == "lora":
        return "{:,} examples of {} tokens, {} epochs.".format(*TUNING) + _LEFT_OUT
    if job == "tokens":
        requests = report.tokens[workload.id].requests
        return f"Requests of {requests.lengths_text}."
    if job == "serve" and embeds(report, workload):
        tokens = report.catalogue.models[workload.id].tokens_per_example
        size = f"Documents of {tokens} tokens, as one batch on a machine that is never idle."
        return f"{size} We list no prices of embedding APIs."
    if job == "serve":
        return "A million requests, as one batch on a machine that is never idle."
    return f"{render_training(report, workload, contest.goal)}.{_LEFT_OUT}"


def _render_job(report: Report, workload: Workload, job: Job) -> str:
    return _EMBED if job == "serve" and embeds(report, workload) else _JOBS[job]


def _unconfirmed_price_note(contest: Contest) -> str:
    parts, sure = contest.cheapest.price.unconfirmed_text, contest.confirmed
    if not parts:
        return ""
    idle = ", never idle" if contest.goal == "tokens" else ""
    doubt = f" “Unconfirmed”: the price's source does not confirm its {parts}; ask the provider."
    if sure is None or contest.is_short:
        return doubt
    least = f"{sure.amount} on {sure.name}{idle}, price of {sure.price.as_of}"
    return f"{doubt} The cheapest at a confirmed price: {least}."


def _answer_cards(contest: Contest) -> Iterator[Card]:
    if contest.is_short:
        yield _card("Cheapest", contest.cheapest)
        if contest.confirmed:
            yield _card("Cheapest at a confirmed price", contest.confirmed)
        return
    # Equal answers share a card.
    for _, names in groupby(_TITLES, key=lambda name: id(getattr(contest, name))):
        first, *others = names
        title = ", ".join([_TITLES[first], *(_TITLES[name].lower() for name in others)])
        yield _card(" and ".join(title.rsplit(", ", 1)), getattr(contest, first))


def _token_cards(answer: TokenAnswer, cheapest_never_idle: Contender, page: str) -> Iterator[Card]:
    best, api, turns = answer.cheapest_machine, answer.cheapest_api, answer.turns
    cheaper = ""
    if api is not None:
        less = api.per_million < cheapest_never_idle.cost.mean
        which = ", even if never idle" if less else f" that is at most {share(MOST_BUSY)} busy"
        cheaper = f"The API is predicted to cost less than any machine with a list price{which}"
    load = wording.render_per_second(answer.requests.per_second)
    load += " request/s" if load == "1" else " requests/s"
    if turns:
        turn = turns[-1]
        machine = one_line(turn.offer.deployment.machine.name)
        cost = wording.render_cost(turn.busiest)
        cheaper = f"{machine}, {share(MOST_BUSY)} busy, {turn.comparison} the API: {cost}"
    if best is not None:
        use = best.deployment
        software = one_line(render_software(use.software, use.precision))
        month = wording.render_month(best.per_million.mean, best.price.currency, answer.requests)
        note = f"{software}, {best.load_text}: {month} at {load}"
        hosted = replace(
            cheapest_never_idle,
            hardware=use.machine.hardware,
            name=use.machine.name,
            price=best.price,
            cost=best.per_million,
            mark=best.mark,
        )
        yield _million(f"Self-host at {load}", hosted, note)
    if api is None:
        yield Card("Cheapest API", "—", "", "no API price", page, "")
    else:
        price, cost = api.api, money(api.per_million, api.api.currency)
        plan = one_line(f"{price.name}, list price of {price.as_of}")
        note = f"{wording.render_month(api.per_million, price.currency, answer.requests)} at {load}"
        yield Card("Cheapest API", cost, _UNIT, one_line(price.provider), page, plan, note)
    yield _million("Self-host, never idle", cheapest_never_idle, cheaper)


def _million(title: str, contender: Contender, software: str) -> Card:
    card = _card(title, contender)
    cost, between = wording.render_cost(contender.cost), _between(contender.cost)
    plan = one_line(wording.plan_note(contender.price, through_month=True))
    return replace(card, cost=cost, time=_UNIT, plan=plan, software=software, between=between)


def _card(title: str, contender: Contender) -> Card:
    between = _between(contender.cost)
    mark = f"{wording.render_mark(contender.mark)}{', unstable' if contender.unstable else ''}"
    return Card(
        title,
        contender.amount,
        wording.render_time(contender.time),
        one_line(contender.name),
        html(machine_uri(contender.hardware)),
        one_line(wording.plan_note(contender.price)),
        one_line(render_software(contender.software, contender.precision)),
        f"{wording.SHAPES[contender.mark]}\N{NO-BREAK SPACE}{mark}",
        f"{between}, {wording.time_range(contender.time)}" if between else "",
    )


def _between(cost: Estimate) -> str:
    return wording.cost_range(cost) if cost.low != cost.high and cost.bounded else ""
