"""Make a decoder's page: the costs of requests and of a fine-tuning, and measured times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epochcost.analysis.reported import reported_rows
from epochcost.analysis.roofline import decoded_steps
from epochcost.analysis.token_answers import TokenAnswer
from epochcost.analysis.tokens import MOST_BUSY
from epochcost.plan.work import ENGINE_SEQUENCES
from epochcost.report.pages.model import job_figure
from epochcost.report.pages.page import METHOD_NAMES, TUNING, Page, Report, workload_uri
from epochcost.report.ranking import Contest
from epochcost.report.traffic import FOLDER, PRECISIONS
from epochcost.report.wording import render_cost, render_mark
from epochcost.specs.model import Model
from epochcost.statistics import group_by
from epochcost.units import money, plain


def page(report: Report, about: Mapping[str, Any], model: Model) -> Page:
    """Make the page of a decoder; ``about`` has the values that all pages about a model show."""
    workload, name = about["workload"], model.id
    timed = report.decoders.get(name, ())
    answer = report.tokens.get(name)
    served = report.market.served.get(name, ())
    contests = report.contests[workload]
    lora = contests.get("lora")
    return Page(
        uri=workload_uri(workload),
        title=model.name,
        template="decoder.md.jinja",
        description=_cost_sentence(model.name, answer, lora),
        context={
            **about,
            "without": _refused_machines_by_reason(answer),
            "decoder": model.decoder,
            # None if nothing can answer the usual requests.
            "answer": answer,
            "most_busy": MOST_BUSY,
            "odds": answer.odds_of(answer.machines) if answer else None,
            "turns": answer.turns if answer else (),
            "timed": timed,
            # Decoding steps and the shortest possible time of their reads, by their evidence.
            "memory": {
                step.timed.evidence.uri: step
                for decoder_timed in timed
                for step in decoded_steps(report.inputs, decoder_timed)
            },
            "traffic": FOLDER,
            "precisions": PRECISIONS,
            # The most requests that the engine processes together.
            "sequences": ENGINE_SEQUENCES,
            "served": served,
            "shortest": min((rate.seconds for each in served for rate in each.rates), default=0.0),
            "reported": reported_rows(report.inputs, name),
            "method_names": METHOD_NAMES,
            "tuned": report.tuned.get(name, {}),
            "lora": lora,
            # The machines at full load, cheapest first.
            "busy": contests.get("tokens"),
            "tuning": TUNING,
        },
        figures={
            "load": job_figure(report, workload, "tokens"),
            "lora": job_figure(report, workload, "lora"),
        },
    )


def _cost_sentence(name: str, answer: TokenAnswer | None, lora: Contest | None) -> str:
    serving, costs = [], []
    if answer and (own := answer.cheapest_machine):
        kind = render_mark(own.mark)
        serving.append(
            f"{render_cost(own.per_million)} on {own.deployment.machine.name} ({kind}) at "
            f"{plain(answer.requests.per_second)} request/s"
        )
    if answer and (api := answer.cheapest_api):
        amount = money(api.per_million, api.api.currency)
        serving.append(f"{amount} by the API of {api.api.provider}")
    if serving:
        costs.append(f"a million tokens cost {' or '.join(serving)}")
    if lora:
        cheap = lora.cheapest
        costs.append(
            f"a fine-tuning by LoRA costs {cheap.amount} on {cheap.name} "
            f"({render_mark(cheap.mark)})"
        )
    return f"{name}: {'; '.join(costs) or 'no machine or API has a known cost'}."


def _refused_machines_by_reason(answer: TokenAnswer | None) -> Mapping[str, tuple[str, ...]]:
    refused = group_by(answer.refused if answer else (), lambda refusal: refusal.reason)
    return {reason: tuple(each.machine for each in group) for reason, group in refused.items()}
