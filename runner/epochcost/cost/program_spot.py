"""What interruptions do to a job, as a program: the formulas of `cost.spot` and `spot_rounding`.

Names of values begin with ``spot.``; each stands for the figure of the same name there, and the
reasons for the formulas stand there too. The rate of interruptions is an input.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost.program import (
    Expression,
    Term,
    ceiling,
    exp,
    floor,
    fold,
    grown,
    largest,
    lost,
    name,
    power,
    smallest,
    sqrt,
    where,
)
from epochcost.specs.billing import Billing
from epochcost.specs.price import Price
from epochcost.specs.terms import Interruptions
from epochcost.units import SECONDS_PER_HOUR

RATE = "interruptions.rate_per_hour"
_LAST_STRETCHES = 200

Values = dict[str, Expression]


@dataclass(frozen=True, slots=True)
class Terms:
    """A plan's constants for an interrupted job, in seconds."""

    first: Decimal
    later: Decimal
    save: Decimal
    lifetime: Decimal | None
    rule: Billing
    interruptions: Interruptions

    @classmethod
    def of(cls, price: Price, interruptions: Interruptions) -> Terms:
        """From a plan that may take its machines back."""
        first = price.start.seconds if price.start.billed else Decimal(0)
        return cls(
            first,
            first + interruptions.restart_seconds,
            interruptions.checkpoint_seconds,
            price.maximum_lifetime_seconds,
            price.billing_rule,
            interruptions,
        )

    @property
    def on_notice(self) -> bool:
        """Whether nothing is lost: the notice is enough to save in, or saving takes no time."""
        terms = self.interruptions
        if 0 < terms.checkpoint_seconds <= terms.notice_seconds:
            return True
        return terms.checkpoint_interval_seconds is None and terms.checkpoint_seconds == 0


def rounded(seconds: Expression, rule: Billing) -> Expression:
    """One start's seconds as they are billed."""
    step = rule.increment_seconds
    whole = ceiling(seconds / step) * step if step else seconds
    if rule.minimum_seconds == 0:
        return whole
    return where(seconds, "<=", rule.minimum_seconds, rule.minimum_seconds, whole)


def spot_values(terms: Terms) -> Values:
    """All values of a job that may be interrupted, up to its billed seconds beyond running."""
    values: Values = {"spot.rate": name(RATE) / SECONDS_PER_HOUR}
    values |= _stretches(terms)
    values |= _expected(terms)
    values |= _rounding(terms)
    return values


def _stretches(terms: Terms) -> Values:
    if terms.on_notice:
        work = name("seconds")
        values = {"spot.segments": Expression(1)}
        in_time = work + terms.later
    else:
        declared = _first_interval(terms)
        values = {"spot.declared": declared, "spot.interval": name("spot.declared")}
        if terms.lifetime is not None:
            values["spot.interval"] = _fitted_interval(terms, terms.lifetime)
        values["spot.segments"] = _segments(name("spot.interval"))
        in_time = _longest_restart(terms, name("spot.segments"))
    values["spot.undisturbed"] = (
        terms.first + name("seconds") + (name("spot.segments") - 1) * terms.save
    )
    values["spot.longest"] = name("spot.undisturbed")
    if terms.lifetime is not None:
        values["spot.in_time"] = where(in_time, "<=", terms.lifetime, 1, 0)
        values["spot.longest"] = _if_in_time(
            terms, name("spot.undisturbed"), _longest_life(terms, terms.lifetime)
        )
    return values


def _first_interval(terms: Terms) -> Expression:
    declared = terms.interruptions.checkpoint_interval_seconds
    if declared is not None:
        return Expression(float(declared))
    between, save = 1 / name("spot.rate"), terms.save
    share, first = save / (2 * between), sqrt(2 * save * between)
    daly = first * (1 + sqrt(share) / 3 + share / 9) - save
    return where(2 * between, "<=", save, between, daly)


def _segments(interval: Expression) -> Expression:
    return largest(1, ceiling(name("seconds") / interval))


def _longest_restart(terms: Terms, segments: Expression) -> Expression:
    return name("seconds") + (segments - 1) * terms.save + terms.later


def _fitted_interval(terms: Terms, lifetime: Decimal) -> Expression:
    """The declared interval where the job ends in time, else one that divides a lifetime."""
    declared, room = name("spot.declared"), lifetime - terms.later
    stretches = room / (declared + terms.save)
    fitted = room / largest(1, ceiling(stretches)) - terms.save
    fitted = where(0, "<", fitted, fitted, declared)
    if terms.interruptions.checkpoint_interval_seconds is not None:
        fitted = where(1, "<=", stretches, declared, fitted)
    calm = _longest_restart(terms, _segments(declared))
    return where(calm, "<=", lifetime, declared, fitted)


def _longest_life(terms: Terms, lifetime: Decimal) -> Term:
    if terms.on_notice:
        return lifetime
    stretch, room = name("spot.interval") + terms.save, lifetime - terms.later
    return lifetime - (room - floor(room / stretch) * stretch)


def _if_in_time(terms: Terms, then: Expression, otherwise: Term) -> Expression:
    if terms.lifetime is None:
        return then
    return where(name("spot.in_time"), "==", 1, then, otherwise)


def _expected(terms: Terms) -> Values:
    """Saving, starting, rework, interruptions and forced ends, as `expected_time` has them."""
    calm = _saved_on_notice(terms) if terms.on_notice else _of_stretches(terms)
    if terms.lifetime is None:
        return calm
    lives = _of_lives(terms, terms.lifetime)
    shared = {key: value for key, value in lives.items() if key not in calm}
    return shared | {key: _if_in_time(terms, calm[key], lives[key]) for key in calm}


def _of_stretches(terms: Terms) -> Values:
    rate, interval, work = name("spot.rate"), name("spot.interval"), name("seconds")
    saves = name("spot.segments") - 1
    last = work - saves * interval
    stretches = saves * grown(rate * (interval + terms.save)) + grown(rate * last)
    begun = lost(rate * terms.first)
    running = exp(rate * terms.later) * (stretches + begun) / rate
    starting = running * lost(rate * terms.later) + begun / rate
    saving = saves * terms.save
    return {
        "spot.saving": saving,
        "spot.starting": starting,
        "spot.rework": largest(0, running - work - saving - starting),
        "spot.interruptions": rate * running,
        "spot.forced": Expression(0),
    }


def _saved_on_notice(terms: Terms) -> Values:
    rate, work = name("spot.rate"), name("seconds")
    begun = lost(rate * terms.first) / rate
    noticed = rate * exp(rate * terms.later) * (work + begun)
    return {
        "spot.saving": rate * work * terms.save,
        "spot.starting": noticed * lost(rate * terms.later) / rate + begun,
        "spot.rework": Expression(0),
        "spot.interruptions": noticed,
        "spot.forced": Expression(0),
    }


def _of_lives(terms: Terms, lifetime: Decimal) -> Values:
    rate, work = name("spot.rate"), name("seconds")
    values = _life_on_notice(terms, lifetime) if terms.on_notice else _life_of_stretches(terms)
    saved, lives = name("spot.life_saved"), name("spot.lives")
    values["spot.lives"] = work / saved
    values["spot.life_starts"] = largest(1, lives + name("spot.life_excess") / saved)
    more = name("spot.life_starts") - 1
    starting = more * lost(rate * terms.later) / rate + lost(rate * terms.first) / rate
    saving = largest(0, lives * name("spot.life_saving") - terms.save)
    rework = largest(0, lives * name("spot.life_worked") - work)
    running = work + starting + rework if terms.on_notice else work + saving + starting + rework
    values["spot.life_interruptions"] = smallest(rate * running, more)
    return values | {
        "spot.saving": saving,
        "spot.starting": starting,
        "spot.rework": rework,
        "spot.interruptions": name("spot.life_interruptions"),
        "spot.forced": more - name("spot.life_interruptions"),
    }


def _life_on_notice(terms: Terms, lifetime: Decimal) -> Values:
    rate = name("spot.rate")
    reached = exp(-rate * terms.later)
    longest = lifetime - terms.later - terms.save
    mean = lost(rate * longest) / rate
    half_square = mean / rate - longest * exp(-rate * longest) / rate
    return {
        "spot.life_saved": reached * mean,
        "spot.life_excess": half_square / mean,
        "spot.life_saving": reached * terms.save,
        "spot.life_worked": name("spot.life_saved"),
    }


def _life_of_stretches(terms: Terms) -> Values:
    """The sum of (j - 1) P(K >= j) stands for the closed form, which loses a browser's digits."""
    rate, interval = name("spot.rate"), name("spot.interval")
    stretch = interval + terms.save
    reached, stays = exp(-rate * terms.later), exp(-rate * stretch)
    most = floor((name("spot.longest") - terms.later) / stretch + Decimal("0.5"))
    through, gone = name("spot.life_most") * rate * stretch, lost(rate * stretch)
    mean = reached * stays * lost(through) / gone
    pairs = reached * fold(name("spot.life_most"), {}, name("i") * power(stays, name("i") + 1))
    saving = name("spot.life_mean") * terms.save
    return {
        "spot.life_most": most,
        "spot.life_mean": mean,
        "spot.life_saved": name("spot.life_mean") * interval,
        "spot.life_excess": pairs / name("spot.life_mean") * interval,
        "spot.life_saving": saving,
        "spot.life_worked": reached * lost(through) / rate - saving,
    }


def _rounding(terms: Terms) -> Values:
    rule = terms.rule
    if rule.increment_seconds == 0 and rule.minimum_seconds == 0:
        return {"spot.rounding": Expression(0)}
    longest = name("spot.longest")
    forced = name("spot.forced") * (rounded(longest, rule) - longest)
    added = name("spot.interruptions") * _added_to_interrupted(terms)
    half = Expression(float(rule.increment_seconds / 2))
    last = _if_in_time(terms, _added_to_last(terms), half)
    return {"spot.rounding": added + forced + last if terms.lifetime else added + last}


def _added_to_interrupted(terms: Terms) -> Expression:
    rate, longest, rule = name("spot.rate"), name("spot.longest"), terms.rule
    step, minimum, chance = rule.increment_seconds, rule.minimum_seconds, lost(rate * longest)
    length, billed = _mean_part(rate, longest, Decimal(0)), _mean_part(rate, longest, step)
    if terms.interruptions.interrupted_period_free:
        billed = billed - step * chance
    elif minimum:
        short = smallest(minimum, longest)
        billed = billed + minimum * lost(rate * short) - _mean_part(rate, short, step)
    return (billed - length) / chance


def _mean_part(rate: Expression, end: Expression, step: Decimal) -> Expression:
    left = exp(-rate * end)
    if step == 0:
        return lost(rate * end) / rate - end * left
    whole = floor(end / step)
    through = exp(-rate * whole * step)
    full = lost(rate * whole * step) / lost(rate * step) - whole * through
    return step * (full + (whole + 1) * (through - left))


def _added_to_last(terms: Terms) -> Expression:
    rate, undisturbed, rule = name("spot.rate"), name("spot.undisturbed"), terms.rule
    calm, half = exp(-rate * undisturbed), rule.increment_seconds / 2
    added = calm * (rounded(undisturbed, rule) - undisturbed) + lost(rate * undisturbed) * half
    return added if terms.on_notice else added + _last_starts(terms, half)


def _last_starts(terms: Terms, half: Decimal) -> Expression:
    """The chance that the last start begins in each stretch, times what it adds beyond a half."""
    rate, interval, segments = name("spot.rate"), name("spot.interval"), name("spot.segments")
    stretch = interval + terms.save
    again, tail = exp(rate * terms.later), name("seconds") - (segments - 1) * interval
    first = lost(rate * terms.first)
    number = again * where(name("i"), "==", 0, grown(rate * tail), grown(rate * stretch))
    number = number + where(name("i"), "==", segments - 1, again * first, 0)
    length = terms.later + tail + name("i") * stretch
    term = number * exp(-rate * length) * (rounded(length, terms.rule) - length - half)
    return fold(smallest(segments, _LAST_STRETCHES), {}, term)
