import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcer.data.channels import CHANNELS, FEATURES, feature_indices, raw_channel
from fcer.data.folds import SPLITS, WSTS, WSTS_PLUS, fair_folds, slots_of, years_of
from fcer.data.normalization import released
from fcer.errors import ConfigError


def test_forty_features_come_from_twenty_three_channels():
    assert (len(CHANNELS), len(FEATURES)) == (23, 40)
    assert {raw_channel(f) for f in range(40)} == set(range(23))
    assert [FEATURES[f] for f in (15, 16, 32, 33, 38, 39)] == [
        "PDSI",
        "land cover 1",
        "land cover 17",
        "forecast total precipitation",
        "active fire",
        "fire mask",
    ]
    for f in (*range(16), *range(33, 39)):
        assert FEATURES[f] == CHANNELS[raw_channel(f)]


def test_named_sets():
    assert feature_indices("vegetation") == (0, 1, 2, 3, 4, 38, 39)
    assert [FEATURES[f] for f in feature_indices("vegetation")][-2:] == ["active fire", "fire mask"]
    assert len(feature_indices("multi")) == 33
    assert not {"PDSI", "energy release component"} & {FEATURES[f] for f in feature_indices("multi")}
    assert feature_indices("all") == tuple(range(40))


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        ("veg", "features: unknown set 'veg'; use vegetation, multi, all, fire or a list of indices 0 to 39"),
        ((0, 40), "features: 40 is no index; give each index from 0 to 39 at most once"),
        ((1, 1), "features: one is named twice; give each index from 0 to 39 at most once"),
        ((), "features: the list is empty; give each index from 0 to 39 at most once"),
    ],
)
def test_wrong_features_get_a_sentence(features, sentence):
    with pytest.raises(ConfigError) as error:
        feature_indices(features)
    assert str(error.value) == sentence


def test_every_fold_uses_each_year_once():
    for folds, years in ((WSTS, range(2018, 2022)), (WSTS_PLUS, range(2016, 2024))):
        for k, fold in enumerate(folds):
            assert fold.number == k
            assert sorted((*fold.train, *fold.validation, *fold.test)) == list(years)
    assert len(set(WSTS)) == 12 and len(set(WSTS_PLUS)) == 4


def test_the_fair_teacher_of_2018_is_the_paper_s_example():
    splits = {(fold.train, fold.validation) for fold in fair_folds(2018)}
    assert splits == {((2019, 2020), (2021,)), ((2019, 2021), (2020,)), ((2020, 2021), (2019,))}
    assert [fold.number for fold in fair_folds(2018)] == [7, 9, 11]
    assert [fold.number for fold in fair_folds(2022, WSTS_PLUS)] == [0]


def test_splits_by_name():
    assert {name: years_of(folds) for name, folds in SPLITS.items()} == {
        "wsts": (2018, 2019, 2020, 2021),
        "wsts_plus": tuple(range(2016, 2024)),
        "fires": (1, 2, 3, 4),
    }


def test_a_fold_that_is_there_again_is_in_its_next_round():
    slots = slots_of([WSTS[0], WSTS[2], WSTS[0], WSTS[0], WSTS[2]])
    assert [slot.label for slot in slots] == ["0", "2", "0-1", "0-2", "2-1"]
    assert [slot.round for slot in slots] == [0, 0, 1, 2, 1]


@given(st.lists(st.sampled_from(WSTS)))
def test_every_slot_has_a_label_of_its_own(folds):
    slots = slots_of(folds)
    assert [slot.fold for slot in slots] == folds
    assert len({slot.label for slot in slots}) == len(folds)


def test_a_year_without_fold_gets_a_sentence():
    with pytest.raises(ConfigError, match=r"^year: no fold tests on 2017; choose one of 2018, 2019, 2020, 2021$"):
        fair_folds(2017)


def test_released_statistics_exist_for_the_training_years_of_every_fold():
    for fold in (*WSTS, *WSTS_PLUS):
        stats = released(fold.train)
        assert len(stats.mean) == len(stats.std) == 23
        assert all(stats.mean[c] == 0 and stats.std[c] == 1 for c in (7, 13, 16, 19))
    assert released((2019, 2018)) == released((2018, 2019))
    assert released((2018, 2019)).mean[0] == 1959.0582275390625
    with pytest.raises(ConfigError, match="no released statistics for the training years 2018; there are 2018-2019"):
        released((2018,))
