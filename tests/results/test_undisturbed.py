"""The step undisturbed, told from readings beside the samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from epochcost.results.pace import own_paces
from epochcost.results.records import Measurement, Result
from epochcost.results.rounds import add_round, summary_of
from epochcost.results.undisturbed import as_it_was, undisturbed
from made_pace import made_pace

MakeResult = Callable[..., Result]
Make = Callable[..., Result]


@pytest.fixture(name="watched")
def watched_fixture(make_result: MakeResult) -> Make:
    """A result of some rounds of steps, with a reading after every fifth of them.

    Of each round: the step's seconds, the share of the time that was waited, how many times as long
    products took, and copies.
    """

    def one(step: float, waited: float, slower: float, copies: float, seed: int) -> Measurement:
        random = np.random.default_rng(seed)
        samples = random.normal(step, step / 100, 60)
        counts = range(0, 60, 5)
        between = [float(samples[max(0, at - 5) : at].sum()) * waited for at in counts]
        pace = made_pace(
            counts,
            product_seconds=tuple(random.normal(0.002 * slower, 0.00002, 12)),
            copy_seconds=tuple(random.normal(0.003 * copies, 0.00003, 12)),
            waited_seconds=tuple(between),
        )
        changes = {"samples_seconds": tuple(samples.tolist()), "pace": pace, "rounds": ()}
        return make_result().measurement.model_copy(update=changes)

    def make(*rounds: tuple[float, float, float, float]) -> Result:
        joined: Measurement | None = None
        for seed, each in enumerate(rounds):
            joined = add_round(joined, one(*each, seed), 0.02)
        return make_result().model_copy(update={"measurement": joined})

    return make


QUIET = (0.1, 0.0, 1.0, 1.0)
SLOWER = (0.17, 0.0, 1.6, 1.0)
# Copies take longer, and steps of small operators less time.
TOGETHER = (0.07, 0.0, 1.0, 1.7)


def test_a_quiet_machine_is_not_corrected(watched: Make) -> None:
    """At its own pace throughout there is nothing to say: the step is as it was."""
    quiet = watched(QUIET, QUIET, QUIET)
    assert undisturbed(quiet, own_paces([quiet])) is None


def test_what_was_waited_for_is_taken_off(watched: Make) -> None:
    """Of a round that others lengthened the part is taken off that the threads waited."""
    disturbed = watched(QUIET, (0.165, 0.5, 1.0, 1.0), QUIET)
    found = undisturbed(disturbed, own_paces([disturbed, watched(QUIET)]))
    assert found is not None
    assert found.step is not None
    assert found.step.mean == pytest.approx(0.1, rel=0.03)
    assert found.waited_share == pytest.approx(0.0825 / 0.365, rel=0.05)
    assert found.left_out_share == 0


def test_slower_stretches_are_left_out(watched: Make) -> None:
    """What no counter tells, the fixed work does: a round of a slower host is not part of it."""
    disturbed = watched(QUIET, SLOWER, QUIET)
    found = undisturbed(disturbed, own_paces([disturbed]))
    assert found is not None
    assert found.step is not None
    assert found.step.mean == pytest.approx(0.1, rel=0.01)
    assert found.left_out_share == pytest.approx(0.17 / 0.37, rel=0.02)


def test_stretches_in_which_steps_are_no_slower_stay(watched: Make) -> None:
    """Where the fixed work alone is slow, nothing disturbed the steps: they are as they were."""
    faster = watched(QUIET, (0.07, 0.0, 1.6, 1.0), QUIET, QUIET)
    assert undisturbed(faster, own_paces([faster])) is None


def test_one_process_of_several_says_too_little(watched: Make) -> None:
    """What is left of three rounds must be of two, for processes differ."""
    disturbed = watched(QUIET, SLOWER, SLOWER)
    found = undisturbed(disturbed, own_paces([disturbed]))
    assert found is not None
    assert found.step is None


def test_each_state_of_the_machine_counts_by_its_usual_share(watched: Make) -> None:
    """Three in four rounds of the machine's results were in the one that two of three were here."""
    mixed = watched(QUIET, TOGETHER, TOGETHER)
    paces = own_paces([mixed, watched(QUIET), *[watched(TOGETHER)] * 4])
    found = undisturbed(mixed, paces)
    assert found is not None
    assert found.step is not None
    assert found.step.mean == pytest.approx(0.25 * 0.1 + 0.75 * 0.07, rel=0.01)
    assert found.step.low < found.step.mean < found.step.high
    assert found.slow_copies_share == pytest.approx(0.14 / 0.24, rel=0.02)


def test_rounds_that_only_their_state_tells_apart_agree(watched: Make) -> None:
    """The interval is of what is left, a tenth of that of the time as it was."""
    mixed = watched(QUIET, TOGETHER, TOGETHER, QUIET)
    found = undisturbed(mixed, own_paces([mixed]))
    assert found is not None
    assert found.step is not None
    half = (found.step.high - found.step.low) / 2 / found.step.mean
    assert half < summary_of(mixed.measurement).relative_half_width / 10


def test_of_one_state_alone_the_interval_knows_of_the_other(watched: Make) -> None:
    """By as much as states differ, and by how long the machine is in the one that was not met."""
    alone = watched(QUIET, QUIET, QUIET)
    half = [
        told.step
        for others in (1, 3)
        if (told := undisturbed(alone, own_paces([alone, *[watched(TOGETHER)] * others])))
    ]
    rare, usual = ((one.high - one.low) / 2 / one.mean for one in half if one)
    assert rare == pytest.approx(1.96 * 0.22 * 1 / 4, rel=0.05)
    assert usual == pytest.approx(1.96 * 0.22 * 3 / 6, rel=0.05)
    assert undisturbed(alone, own_paces([alone])) is None


def test_the_time_as_it_was_knows_of_the_state_that_it_did_not_meet(watched: Make) -> None:
    """Its mean stays and its interval is as wide as the other state demands; of both it stays."""
    alone, mixed = watched(QUIET, QUIET, QUIET), watched(QUIET, TOGETHER, TOGETHER)
    paces = own_paces([alone, mixed])
    plain, both = (summary_of(one.measurement) for one in (alone, mixed))
    told = as_it_was(plain, undisturbed(alone, paces))
    assert told.mean == plain.mean
    assert told.relative_half_width == pytest.approx(1.96 * 0.22 * 1 / 3, rel=0.05)
    assert as_it_was(both, undisturbed(mixed, paces)) == both
    assert as_it_was(plain, None) == plain


def test_two_rounds_are_too_few_for_two_states(watched: Make) -> None:
    """One of each, as is usual: they count as they were."""
    mixed = watched(QUIET, TOGETHER, QUIET, TOGETHER)
    brief = watched(QUIET, TOGETHER)
    found = undisturbed(brief, own_paces([mixed]))
    assert found is not None
    assert found.step is not None
    assert found.step.mean == pytest.approx(0.085, rel=0.01)
    assert found.step.high > 0.1


def test_copies_that_are_slow_at_times_disturb(watched: Make) -> None:
    """A third of a round is no state of the machine: steps that are slower in it are left out."""
    quiet = watched(QUIET, QUIET)
    pace = quiet.measurement.pace
    assert pace is not None
    copies, samples = list(pace.copy_seconds), list(quiet.measurement.samples_seconds)
    copies[4:8] = [0.005] * 4
    samples[20:40] = [0.15] * 20
    changes = {
        "pace": pace.model_copy(update={"copy_seconds": tuple(copies)}),
        "samples_seconds": tuple(samples),
    }
    disturbed = quiet.model_copy(
        update={"measurement": quiet.measurement.model_copy(update=changes)}
    )
    found = undisturbed(disturbed, own_paces([disturbed]))
    assert found is not None
    assert found.step is not None
    assert found.step.mean == pytest.approx(0.1, rel=0.01)
    assert (found.slow_copies_share, found.left_out_share) == (0, pytest.approx(0.23, rel=0.02))


def test_a_machine_that_was_never_itself_leaves_nothing(watched: Make) -> None:
    """Slower from begin to end than elsewhere: the step undisturbed is not known."""
    slow = watched((0.2, 0.0, 2.0, 2.0))
    found = undisturbed(slow, own_paces([slow, watched(QUIET)]))
    assert found is not None
    assert found.step is None


def test_nothing_is_said_without_readings(make_result: MakeResult) -> None:
    """A result of an older version has no pace, and one reading is none of a machine."""
    plain = make_result().measurement.model_copy(update={"pace": None})
    old = make_result().model_copy(update={"measurement": plain})
    assert own_paces([old]) == {}
    assert undisturbed(old, {}) is None


def test_a_machine_has_a_pace_for_each_number_of_cpus(watched: Make) -> None:
    """Works on one of two CPUs take longer, and are no disturbance of those on both."""
    both = watched(QUIET, QUIET)
    pinned = both.model_copy(update={"trial": both.trial.model_copy(update={"vcpus": 1})})
    assert len(own_paces([both, pinned])) == 2


def test_rounds_keep_their_readings_apart(watched: Make) -> None:
    """Readings of all rounds stand in the joined measurement, each after the samples before it."""
    joined = watched(QUIET, QUIET).measurement
    assert joined.pace is not None
    assert joined.pace.after_samples == (*range(0, 60, 5), *range(60, 120, 5))
    assert len(joined.pace.copy_seconds) == 24
