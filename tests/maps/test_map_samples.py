"""Samples of tomorrow's fire in predicted-maps files: kept, checked at the door, and scored."""

from pathlib import Path

import numpy as np
import pytest

from fcer.core.sample_scores import sample_scores
from fcer.errors import PredictionsError
from fcer.evaluation.sample_table import sample_table
from fcer.maps.predicted_maps import PredictedMaps, open_maps, write_maps


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    y = (rng.random((5, 6, 7)) < 0.3).astype(np.uint8)
    prob = rng.random((5, 6, 7))
    return {"y": y, "mine_prob": prob, "mine_unc": prob, "mine_samples": (rng.random((5, 4, 6, 7)) < 0.3) * 1.0}


@pytest.mark.parametrize("suffix", ["npz", "hdf5"])
def test_they_are_stored_and_scored_image_by_image(arrays: dict[str, np.ndarray], tmp_path: Path, suffix: str):
    path = tmp_path / f"predictions_2021.{suffix}"
    write_maps(path, PredictedMaps.from_arrays(arrays, year=2021))
    with open_maps(path) as maps:
        assert maps.methods == maps.sampled == ("mine",)
        assert np.array_equal(maps.samples("mine", slice(1, 3)), arrays["mine_samples"][1:3])
    row = sample_table([path]).iloc[0]
    each = [sample_scores(drawn, fire) for drawn, fire in zip(arrays["mine_samples"], arrays["y"], strict=True)]
    assert (row["year"], row["method"], row["samples"], row["images"]) == (2021, "mine", 4, 5)
    np.testing.assert_allclose(row[["crps_km2", "energy", "diversity"]].astype(float), np.mean(each, axis=0))


def test_maps_without_samples_have_no_row(arrays: dict[str, np.ndarray], tmp_path: Path):
    del arrays["mine_samples"]
    write_maps(tmp_path / "predictions_2021.npz", PredictedMaps.from_arrays(arrays, year=2021))
    assert sample_table([tmp_path / "predictions_2021.npz"]).empty


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("mine_samples", lambda a: a[:, :1], r"mine_samples has shape \(5, 1, 6, 7\), y has .* two samples"),
        ("mine_samples", lambda a: a[..., :5], r"mine_samples has shape \(5, 4, 6, 5\), y has"),
        ("mine_samples", lambda a: a * 2, "mine_samples holds 2; give every pixel a value from 0 to 1"),
        ("other_samples", lambda _: np.zeros((5, 4, 6, 7)), "other_samples has no other_prob beside it"),
    ],
)
def test_what_cannot_be_samples_is_refused(arrays: dict[str, np.ndarray], name: str, change, sentence: str):
    arrays[name] = change(arrays["mine_samples"])
    with pytest.raises(PredictionsError, match=sentence):
        PredictedMaps.from_arrays(arrays, year=2021)
