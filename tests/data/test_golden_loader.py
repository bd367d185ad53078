"""Samples equal those of an independent implementation, from either form on disk."""

from pathlib import Path

import numpy as np
import pytest

from fcer.data.catalog import open_catalog
from fcer.data.channels import feature_indices
from fcer.data.normalization import released
from fcer.data.samples import TEST_LEADING_DAYS, Samples
from golden_fires import GOLDEN, LOADER

CASES = list(enumerate(LOADER["cases"]))


@pytest.fixture(params=["golden_hdf5", "golden_geotiff"])
def root(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


def samples_of(case: dict, root: Path) -> Samples:
    assert case["test_adjustment"] == TEST_LEADING_DAYS
    features = "all" if case["features"] == "all 40" else case["features"]
    return Samples(
        open_catalog(root, case["years"]).fires,
        days=case["leading_days"],
        features=feature_indices(features),
        normalization=released(case["stats_years"]),
        leading=TEST_LEADING_DAYS,
    )


@pytest.mark.parametrize(("number", "case"), CASES)
def test_every_sample_has_the_golden_moments_and_corners(number: int, case: dict, root: Path):
    samples = samples_of(case, root)
    assert len(samples) == case["length"] == len(case["samples"])
    for k, golden in enumerate(case["samples"]):
        x, y = samples[k]
        assert list(x.shape) == golden["x_shape"]
        assert int(y.sum()) == golden["y_sum"]
        np.testing.assert_allclose(x.mean((0, 2, 3), dtype=np.float64), golden["x_channel_mean"], atol=1e-4)
        np.testing.assert_allclose(x[-1, :4, 0, 0], golden["corner"], atol=1e-4)
        np.testing.assert_allclose(x[0, :4, 64, 64], golden["centre"], atol=1e-4)
        np.testing.assert_allclose(x.std((0, 2, 3), dtype=np.float64), golden["x_channel_std"], atol=1e-4)


@pytest.mark.parametrize("number", [0, 1])
def test_pixels_equal_the_golden_ones(number: int, root: Path):
    x, y = samples_of(LOADER["cases"][number], root)[0]
    with np.load(GOLDEN / "loader.npz") as golden:
        np.testing.assert_allclose(x[..., ::2, ::2], golden[f"case{number}_x"], atol=1e-4)
        np.testing.assert_array_equal(y, golden[f"case{number}_y"])


def test_samples_of_one_and_five_days_have_the_same_labels(golden_hdf5: Path):
    five, one = (samples_of(LOADER["cases"][k], golden_hdf5) for k in (0, 1))
    for k in range(len(five)):
        np.testing.assert_array_equal(five[k].y, one[k].y)
        np.testing.assert_array_equal(five[k].x[-1:], one[k].x)
