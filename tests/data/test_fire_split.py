"""Groups of fires in the place of years: balanced, touching fires together, decided by content and seed."""

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fcer.data.catalog import open_catalog
from fcer.data.fire_split import open_fire_split
from fcer.data.folds import FIRES, WSTS, FireBox, fair_folds, fire_groups
from fcer.errors import DataError

BOXES = st.builds(
    lambda west, south, size, pixels, digest: FireBox((west, south, west + size, south + size), pixels, str(digest)),
    st.floats(-180, 179),
    st.floats(-80, 80),
    st.floats(0.1, 3),
    st.integers(0, 5000),
    st.integers(0, 10**9),
)


def touch(a: FireBox, b: FireBox) -> bool:
    """Checked on every shift of the globe, one after the other."""
    (w, s, e, n), (w2, s2, e2, n2) = a.bounds, b.bounds
    return s <= n2 and s2 <= n and any(w <= e2 + turn and w2 + turn <= e for turn in (-360, 0, 360))


@given(st.lists(BOXES, min_size=4, max_size=30, unique_by=lambda box: box.digest), st.integers(0, 5))
def test_touching_fires_share_a_group_and_order_does_not_matter(boxes: list[FireBox], seed: int):
    fires = {f"fire_{k}": box for k, box in enumerate(boxes)}
    try:
        groups = fire_groups(fires, seed)
    except DataError as error:
        assert "separate places cannot be dealt into 4 groups" in str(error)
        return
    assert set(groups.values()) == {1, 2, 3, 4}
    for a in fires:
        for b in fires:
            assert not touch(fires[a], fires[b]) or groups[a] == groups[b]
    assert fire_groups(dict(reversed(fires.items())), seed) == groups


def test_groups_are_alike_in_fire_pixels_and_seeds_differ():
    rng = np.random.default_rng(0)
    fires = {
        f"fire_{k}": FireBox((k * 2.0, 40, k * 2.0 + 1, 41), int(n), str(k))
        for k, n in enumerate(rng.lognormal(6, 1, 60))
    }
    dealt = [fire_groups(fires, seed) for seed in range(3)]
    for groups in dealt:
        loads = [sum(box.pixels for name, box in fires.items() if groups[name] == g) for g in (1, 2, 3, 4)]
        assert max(loads) / min(loads) < 1.1
    assert dealt[0] != dealt[1] != dealt[2]


def test_the_folds_are_those_of_the_years():
    assert [tuple(year - 2017 for part in fold[1:] for year in part) for fold in WSTS] == [
        tuple(group for part in fold[1:] for group in part) for fold in FIRES
    ]
    assert [fold.number for fold in fair_folds(4, FIRES)] == [fold.number for fold in fair_folds(2021, WSTS)]


def test_a_dataset_opens_by_groups(small_fires: Path, tmp_path: Path):
    dataset = open_fire_split(small_fires, features=(0, 38, 39), crop=32, cache=tmp_path, seed=1)
    names = {fire.name for fire in open_catalog(small_fires).fires}
    assert {fire.name for fire in dataset.fires((1, 2, 3, 4))} == names
    for group in (1, 2, 3, 4):
        assert [fire.year for fire in dataset.fires([group])] == [group]
    assert dataset.normalization((1, 2)).mean[0] != dataset.normalization((3, 4)).mean[0]
    again = open_fire_split(small_fires, features=(0, 38, 39), crop=32, cache=tmp_path, seed=1)
    assert again.fingerprint((1, 2)) == dataset.fingerprint((1, 2)) != dataset.fingerprint((3, 4))
