"""`fcer evaluate --test-image full`: fires of several sizes, predicted and scored as large as they are."""

import io
import shutil
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from fcer.cli import main
from fcer.config.resolve import resolve
from fcer.config.settings import Config
from fcer.data.catalog import open_catalog
from fcer.data.channels import feature_indices
from fcer.data.samples import Samples, central_crop
from fcer.errors import FcerWarning
from fcer.maps.predicted_maps import PredictedMaps, open_maps
from fcer.models.student_files import load_student
from fcer.pipeline.study_data import StudyData
from study_cases import HEAD, TINY

QUICK = [
    *(*TINY, *HEAD, "--arch", "unet_t1", "--member-epochs", "1", "--members", "2", "--bootstrap", "0"),
    *("--methods", "student", "ensemble", "tta"),
]
ALL = slice(None)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory, shared_store: str) -> tuple[Path, str]:
    """The same study on whole images, then on crops: what the second one printed."""
    folder = tmp_path_factory.mktemp("full")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("MLFLOW_TRACKING_URI", shared_store)
        for image in ("full", "crop"):
            # into one folder: maps of the other images are not to be taken for these
            with redirect_stdout(io.StringIO()) as out:
                assert main(["evaluate", *QUICK, "--test-image", image, "--out", "results"]) == 0
            shutil.copytree("results", image)
    return folder, out.getvalue()


@pytest.fixture
def whole(study: tuple[Path, str]) -> Callable[[], PredictedMaps]:
    return lambda: open_maps(study[0] / "full" / "predictions_2021.npz")


def test_maps_are_the_students_own_on_whole_images(study: tuple[Path, str], whole: Callable[[], PredictedMaps]):
    folder, _ = study
    (head,) = folder.glob("work/**/head.safetensors")
    loaded = load_student(head.parent)
    (data,) = folder.glob("work/synthetic-*")
    samples = Samples(
        open_catalog(data, [2021]).fires,
        days=1,
        features=feature_indices("vegetation"),
        normalization=loaded.normalization,
        crop=None,
        leading=5,
    )
    with whole() as maps:
        assert len({tuple(size) for size in maps.size.tolist()}) == 2, "else this tests nothing"
        assert len(samples) == len(maps.size)
        for index, ((x, y), (rows, columns)) in enumerate(zip(samples, maps.size, strict=True)):
            assert y.shape == (rows, columns)
            own = index, slice(rows), slice(columns)
            prob, unc = loaded.student.predict(torch.from_numpy(x)[None])
            np.testing.assert_array_equal(maps.fire(ALL)[own], y == 1)
            np.testing.assert_allclose(maps.prob("student", ALL)[own], prob[0], atol=1e-5)
            np.testing.assert_allclose(maps.unc("student", ALL)[own], unc[0], atol=1e-5)


def test_the_crop_is_the_middle_of_it(study: tuple[Path, str], whole: Callable[[], PredictedMaps]):
    folder, said = study
    assert said.count("trained before") == 2 and "distilled before" in said, "only test images differ"
    with whole() as maps, open_maps(folder / "crop" / "predictions_2021.npz") as crops:
        assert crops.size is None and crops.shape == (maps.shape[0], 32, 32)
        assert crops.date.tolist() == maps.date.tolist()
        apart = 0.0
        for index, (rows, columns) in enumerate(maps.size):
            middle = index, central_crop(rows, 32), central_crop(columns, 32)
            np.testing.assert_array_equal(maps.fire(ALL)[middle], crops.fire(ALL)[index])
            apart = max(apart, np.abs(maps.prob("student", ALL)[middle] - crops.prob("student", ALL)[index]).max())
        assert apart > 1e-4, "with more of the fire in sight a backbone sees other things"


def test_every_pixel_of_whole_images_is_scored(study: tuple[Path, str], whole: Callable[[], PredictedMaps]):
    sweep = pd.read_csv(study[0] / "full" / "sweep.csv")
    with whole() as maps:
        burning = maps.fire(ALL).any(axis=(1, 2))
        scored = sweep[sweep["radius_px"] == np.inf]["n_pixels"].unique().tolist()
        assert scored == [maps.size[burning].prod(axis=1).sum()] and scored[0] < maps.fire(ALL)[burning].size


def configured(small_fires: Path, work: Path, **options: str) -> Config:
    return resolve(None, {"data": str(small_fires), "work": str(work), "crop": "64", "workers": "1", **options}).config


def test_a_fire_smaller_than_the_crop_is_predicted_whole(small_fires: Path, tmp_path: Path):
    data = StudyData(configured(small_fires, tmp_path, test_image="full"))
    dataset = data.open([2018], whole=True)
    assert len(dataset.fires([2018])) == 2 and not dataset.left_out
    samples = data.test_samples(2018)
    assert samples.crop is None and {samples.raw(k)[1].shape for k in range(len(samples))} == {
        (fire.height, fire.width) for fire in dataset.fires([2018])
    }
    with pytest.warns(FcerWarning, match="left out: .* smaller than the crop of 64"):
        cropped = data.open([2018])
    assert len(cropped.left_out) == 2


def test_crops_are_evaluated_unless_whole_images_are_asked_for(small_fires: Path, tmp_path: Path):
    data = StudyData(configured(small_fires, tmp_path, crop="32"))
    assert data.test_samples(2018).crop == data.central_samples([2018]).crop == 32
