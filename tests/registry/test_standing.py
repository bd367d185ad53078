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
