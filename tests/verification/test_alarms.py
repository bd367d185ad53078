"""Alarms on records: quiet ones stay quiet, each broken promise is found and named."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fcer.verification.alarms import KINDS, judge
from fcer.verification.days import days_of
from fcer.verification.fires import fire_numbers
from fcer.verification.page import write_page
from fcer.verification.record import with_rows

START = date(2021, 6, 1)
VALIDATION = 12
NONE = pd.DataFrame(columns=["key", "status"])


def record_of(n_fires: int = 60, **changed: Any) -> pd.DataFrame:
    """A season after validation fires of the same kind: fires of three days, one a day; `changed` from day 30."""
    rng = np.random.default_rng(0)
    rows = []
    for fire in range(n_fires):
        skill = rng.normal(0.1, 0.2)
        for k in range(3):
            day = START + timedelta(days=fire + k)
            row = {
                **{"key": f"{fire} {k}", "model": "fcer-student 1", "student": "s", "calibration": "c", "reason": ""},
                **{"fire": f"fire_{fire}", "date": str(day), "status": "verified", "file": "", "lacking": ""},
                **{"beyond": "", "channels": 2, "validation_fires": VALIDATION, "lacking_at_most": 0.05},
                **{"nll_skill": rng.normal(skill, 0.1), "auroc": rng.uniform(0.5, 0.9), "lift": rng.uniform(0, 0.5)},
                **{"promise": "p", "miss_0.2": rng.uniform(0, 0.3), "zone_km2_0.2": 10.0},
            }
            rows.append({**row, **(changed if fire + k >= 30 else {})})
    others = {
        "nll_skill": rng.normal(0.1, np.hypot(0.2, 0.1), VALIDATION),
        "auroc": rng.uniform(0.5, 0.9, VALIDATION),
        "lift": rng.uniform(0, 0.5, VALIDATION),
    }
    for name, values in others.items():
        for row in rows:
            rank = np.searchsorted(np.sort(values), row[name], side="right")
            row |= {f"{name}_rank": rank, f"{name}_of": VALIDATION, f"{name}_expected": values.mean()}
    return with_rows(NONE, rows)


@pytest.mark.parametrize(
    ("kind", "changed", "words"),
    [
        ("forecast", {"nll_skill": -3.0}, "NLL skill near the fire is"),
        ("forecast", {"lift": -0.8}, "its AP against persistence is -0.8 over"),
        ("uncertainty", {"auroc": 0.1}, "AUROC of errors near the fire is"),
        ("zones", {"miss_0.2": 0.9}, "zones for a miss of 0.2 miss"),
        ("inputs", {"lacking": "NDVI"}, "inputs lack NDVI: a share of"),
        ("inputs", {"beyond": "EVI2"}, "EVI2 of the inputs is outside"),
    ],
)
def test_what_breaks_in_the_middle_is_found_and_named(kind: str, changed: dict[str, Any], words: str):
    (season,) = judge(record_of(**changed))
    (alarm,) = season.alarms
    assert alarm.kind == kind and words in season.sentence
    assert 0 <= (alarm.since - START).days - 30 <= 16
    last = season.evidence.iloc[-1]
    assert last[kind] >= 1 and all(last[other] < 1 for other in KINDS if other != kind)


def test_what_is_known_later_changes_nothing_of_earlier_days():
    record = record_of(**{"miss_0.2": 0.9})
    (whole,) = judge(record)
    until = str(START + timedelta(days=40))
    (part,) = judge(record[record["date"] <= until])
    earlier = whole.evidence[whole.evidence["date"] <= until]
    pd.testing.assert_frame_equal(part.evidence, earlier)


def test_years_and_students_are_seasons_of_their_own():
    record = record_of(5)
    other = record.assign(key=record["key"] + "x", student="t", date=record["date"].str.replace("2021", "2020"))
    seasons = judge(with_rows(record, other.to_dict("records")))
    assert [(season.student, season.year, season.fires) for season in seasons] == [("s", 2021, 5), ("t", 2020, 5)]


def test_kinds_of_which_nothing_is_promised_are_not_tested():
    (season,) = judge(record_of(5).assign(auroc_rank=np.nan, lacking_at_most=np.nan, channels=np.nan))
    assert season.untested == ("uncertainty", "inputs")
    before = record_of(5).assign(validation_fires=np.nan, beyond="NDVI")  # as the version before wrote them
    assert judge(before)[0].untested == ()


def test_images_that_overlap_are_one_fire():
    rows = pd.DataFrame(
        {
            "fire": ["a", "b", "c", "a", "d"],
            "west": [0.0, 0.5, 5.0, 9.0, np.nan],
            "south": [0.0, 0.5, 5.0, 9.0, np.nan],
            "east": [1.0, 1.5, 6.0, 9.5, np.nan],
            "north": [1.0, 1.5, 6.0, 9.5, np.nan],
        }
    )
    assert fire_numbers(rows) == [0, 0, 1, 0, 2]


def test_the_page_names_the_alarm_and_escapes_names(tmp_path: Path):
    record = record_of(**{"miss_0.2": 0.9}).assign(model="<b>mine</b>")
    write_page(tmp_path / "record.html", record, judge(record))
    page = (tmp_path / "record.html").read_text()
    assert 'class="alarm"' in page and "zones for a miss of 0.2" in page and "<b>mine" not in page


def test_days_tell_means_counts_and_evidence():
    record = record_of(5)
    (season,) = judge(record)
    days = days_of(record, season)
    assert len(days) == 7 and days[2].metrics["verify/verified"] == 3
    own = record[record["date"] == str(days[2].day)]
    assert days[2].metrics["verify/auroc"] == pytest.approx(own["auroc"].mean())
    assert days[2].metrics["alarm/zones"] == season.evidence["zones"][2]
