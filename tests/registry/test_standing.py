"""Who should be champion, as a function of what is registered: a table of cases, and what holds of all of them."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcer.registry.standing import ALREADY, KEPT, PROMOTED, Standing, decide

CHAMPION = Standing("1", "a", auroc=0.7, low=0.6, high=0.8, anchor_px=4.0, fires=9, years="2020", data="d")
CHALLENGER = dataclasses.replace(CHAMPION, version="2", run_id="b")

SHARES = st.floats(0, 1)


def challenger(**changed: object) -> Standing:
    return dataclasses.replace(CHALLENGER, **changed)


@pytest.mark.parametrize(
    ("ours", "theirs", "outcome", "said"),
    [
        (challenger(), None, PROMOTED, "version 2 is champion now: there was none"),
        (Standing("2"), None, PROMOTED, "there was none"),
        (CHAMPION, CHAMPION, ALREADY, "version 1 is champion already"),
        (Standing("1"), CHAMPION, ALREADY, "version 1 is champion already"),
        (challenger(auroc=0.75), CHAMPION, PROMOTED, "(0.6000 to 0.8000 over draws of 9 fires) within 4 px of fire"),
        (challenger(), CHAMPION, PROMOTED, "validation AUROC 0.7000"),
        (challenger(auroc=0.65, high=0.7), CHAMPION, PROMOTED, "0.7000 of version 1, which is not beyond the interval"),
        (
            challenger(auroc=0.65, high=0.699),
            CHAMPION,
            KEPT,
            "version 1 stays champion: version 2 has validation AUR",
        ),
        (challenger(auroc=0.65, high=0.699), CHAMPION, KEPT, "0.6990 over draws of 9 fires"),
        (challenger(auroc=0.71, high=0.69), CHAMPION, PROMOTED, "0.7100"),
        (challenger(fires=1, low=0.69, high=0.69, auroc=0.69), CHAMPION, KEPT, "(one fire, which has no interval)"),
        (challenger(anchor_px=3.0, auroc=0.9), CHAMPION, KEPT, "within 4 px of fire and version 2 within 3 px"),
        (challenger(anchor_px=3.0, auroc=0.9), CHAMPION, KEPT, "distil with --anchor 4.0, or set the alias"),
        (challenger(high=None), CHAMPION, KEPT, "version 2 does not say its validation AUROC, interval and anchor"),
        (challenger(auroc=None), CHAMPION, KEPT, "version 2 does not say"),
        (challenger(), dataclasses.replace(CHAMPION, auroc=None), KEPT, "version 1 does not say"),
        (challenger(), dataclasses.replace(CHAMPION, anchor_px=None), KEPT, "version 1 does not say"),
        (challenger(), dataclasses.replace(CHAMPION, low=None, high=None, fires=None), PROMOTED, "version 2 is champ"),
    ],
)
def test_what_becomes_of_a_challenger(ours: Standing, theirs: Standing | None, outcome: str, said: str):
    decision = decide(ours, theirs)
    assert decision.outcome == outcome and said in decision.reason and decision.warning is None


@pytest.mark.parametrize(
    ("changed", "warning"),
    [
        ({"data": "other"}, "version 2 on 2020 and version 1 on 2020 were not validated on the same fires"),
        ({"data": "other", "years": "2018"}, "version 2 on 2018 and version 1 on 2020 were not validated on the same"),
        ({"data": None, "years": None}, "version 2 on unknown years and version 1 on 2020 were not validated"),
    ],
)
@pytest.mark.parametrize("auroc", [0.9, 0.1])
def test_other_fires_are_compared_with_a_warning(changed: dict[str, str], warning: str, auroc: float):
    decision = decide(challenger(auroc=auroc, high=auroc, **changed), CHAMPION)
    assert decision.outcome == (PROMOTED if auroc > 0.7 else KEPT)
    assert warning in (decision.warning or "")


def scored(auroc: float, low: float, high: float) -> Standing:
    return challenger(auroc=auroc, low=min(low, high), high=max(low, high))


@given(ours=SHARES, low=SHARES, high=SHARES, theirs=SHARES)
def test_a_better_one_is_always_promoted(ours: float, low: float, high: float, theirs: float):
    decision = decide(scored(max(ours, theirs), low, high), dataclasses.replace(CHAMPION, auroc=min(ours, theirs)))
    assert decision.outcome == PROMOTED


@given(ours=SHARES, low=SHARES, high=SHARES, theirs=SHARES, more=SHARES)
def test_a_higher_score_never_costs_a_promotion(ours: float, low: float, high: float, theirs: float, more: float):
    champion = dataclasses.replace(CHAMPION, auroc=theirs)
    if decide(scored(ours, low, high), champion).outcome == PROMOTED:
        raised = [min(1.0, value + more) for value in (ours, low, high)]
        assert decide(scored(*raised), champion).outcome == PROMOTED


@given(ours=SHARES, low=SHARES, high=SHARES, theirs=SHARES)
def test_only_one_beyond_the_interval_is_kept(ours: float, low: float, high: float, theirs: float):
    standing = scored(ours, low, high)
    decision = decide(standing, dataclasses.replace(CHAMPION, auroc=theirs))
    assert (decision.outcome == KEPT) == (theirs > standing.high and theirs > standing.auroc)


@given(ours=SHARES, theirs=SHARES, our_data=st.sampled_from("dx"), our_anchor=st.sampled_from([3.0, 4.0]))
def test_a_reason_is_one_line_that_names_both(ours: float, theirs: float, our_data: str, our_anchor: float):
    standing = challenger(auroc=ours, low=ours, high=ours, data=our_data, anchor_px=our_anchor)
    decision = decide(standing, dataclasses.replace(CHAMPION, auroc=theirs))
    assert "version 1" in decision.reason and "version 2" in decision.reason
    assert "\n" not in decision.reason + (decision.warning or "")


FIRES = [f"fire_{k}" for k in range(9)]


def with_fires(standing: Standing, less: float = 0.0, **scores: float) -> Standing:
    """The same on nine fires, each by `less` below what it was."""
    named = {"auroc": 0.9, **scores}
    by_fire = {fire: {name: value + k / 100 - less for name, value in named.items()} for k, fire in enumerate(FIRES)}
    return dataclasses.replace(standing, by_fire=by_fire)


def test_champions_do_not_lead_down_step_by_step():
    """Ten challengers, each 0.015 worse than the champion of its time and within its interval of it."""
    best = champion = dataclasses.replace(CHAMPION, auroc=0.9)
    for version in range(2, 12):
        auroc = 0.9 - 0.015 * (version - 1)
        ours = challenger(version=str(version), auroc=auroc, low=auroc - 0.03, high=auroc + 0.03)
        if decide(ours, champion, best).outcome == PROMOTED:
            champion = ours
    assert champion.auroc == pytest.approx(0.87), "as far as the interval of the best one reaches, and no further"
    kept = decide(challenger(auroc=0.86, high=0.89), champion, best)
    assert "too little against 0.9000 of version 1, the best champion so far; distil" in kept.reason


def test_by_fire_ten_challengers_do_not_take_the_champion_down_at_all():
    """Each 0.015 worse in every fire, with an interval so wide that it says nothing."""
    best = champion = with_fires(dataclasses.replace(CHAMPION, auroc=0.9, low=0.5, high=1.0))
    for version in range(2, 12):
        less = 0.015 * (version - 1)
        ours = with_fires(challenger(version=str(version), auroc=0.9 - less, low=0.5, high=1.0), less)
        if decide(ours, champion, best).outcome == PROMOTED:
            champion = ours
    assert champion is best


def test_by_fire_a_small_difference_is_seen():
    champion = with_fires(CHAMPION)
    assert decide(challenger(auroc=0.69), champion).outcome == PROMOTED, "within the interval"
    worse = decide(with_fires(challenger(auroc=0.69), 0.015), champion)
    assert worse.outcome == KEPT
    assert "on the same fires its AUROC is lower (median difference -0.0150 over 9 fires, p 0.002)" in worse.reason
    assert decide(with_fires(challenger(), -0.015), champion).outcome == PROMOTED


@pytest.mark.parametrize(
    ("scores", "said"),
    [({"auroc_within": 0.5}, "AUROC within the predicted class is lower"), ({"nll": 0.9}, "log-likelihood is higher")],
)
def test_other_scores_count_too(scores: dict[str, float], said: str):
    (name,) = scores
    champion = with_fires(CHAMPION, **{name: 0.7})
    decision = decide(with_fires(challenger(), **scores), champion)
    assert decision.outcome == KEPT and said in decision.reason


def test_few_fires_or_others_leave_it_to_the_interval():
    champion = with_fires(CHAMPION)
    ours = with_fires(challenger(), 0.015)
    few = dataclasses.replace(ours, by_fire=dict(list(ours.by_fire.items())[:5]))
    others = dataclasses.replace(ours, by_fire={f"other {fire}": scores for fire, scores in ours.by_fire.items()})
    unscored = dataclasses.replace(ours, by_fire={fire: {"auroc": float("nan")} for fire in FIRES})
    assert {decide(one, champion).outcome for one in (few, others, unscored)} == {PROMOTED}


def test_an_alarm_of_verified_forecasts_keeps_a_student_from_promotion():
    for champion in (CHAMPION, None):
        outcome, reason, _ = decide(challenger(auroc=0.9, alarm="zones miss"), champion)
        assert outcome == KEPT and "version 2's verified forecasts raised an alarm (zones miss)" in reason


def test_a_champion_in_trouble_is_said():
    outcome, _, warning = decide(challenger(), dataclasses.replace(CHAMPION, alarm="zones miss"))
    assert outcome == PROMOTED and "champion's own verified forecasts raised an alarm" in str(warning)


def test_who_forecast_the_same_fires_worse_is_not_promoted():
    theirs = {f"fire_{k}": {"auroc": 0.8 + k / 100} for k in range(8)}
    ours = {fire: {"auroc": scores["auroc"] - 0.015} for fire, scores in theirs.items()}
    assert decide(challenger(verified=ours), CHAMPION).outcome == PROMOTED
    outcome, reason, _ = decide(challenger(verified=ours), dataclasses.replace(CHAMPION, verified=theirs))
    assert outcome == KEPT and "in verified forecasts of the same fires its AUROC is lower" in reason
