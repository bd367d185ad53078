"""Images of several sizes in one file: what was added to make them equal never counts."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.metrics import average_precision_score

from fcer.core.surface import surface_losses
from fcer.evaluation import Results, evaluate, evaluate_files
from fcer.maps.predicted_maps import PredictedMaps, write_maps
from plain_fcer import METHODS, RADII, plain_asd, plain_image_scores, plain_region, plain_scores

GOLDEN = Path(__file__).parent.parent / "data" / "golden"
TABLES = [
    *("sweep", "segmentation", "per_image", "tests", "anchor", "intervals", "sensitivity", "reliability"),
    *("own_errors", "risk_coverage"),
]


def padded(stacks: dict[str, np.ndarray], rows: int, columns: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Maps with so many rows and columns of garbage below and to the right, and the size that they had."""
    rng = np.random.default_rng(seed)
    n, height, width = stacks["y"].shape
    grown = {}
    for name, stack in stacks.items():
        if stack.ndim < 3:
            grown[name] = stack
            continue
        shape = n, height + rows, width + columns
        grown[name] = np.zeros(shape, stack.dtype) if name == "y" else rng.random(shape).astype(stack.dtype)
        grown[name][:, :height, :width] = stack
    return grown | {"size": np.full((n, 2), (height, width))}


def assert_same_tables(ours: Results, theirs: Results) -> None:
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(ours, name), getattr(theirs, name), check_exact=True)


@st.composite
def predicted(draw) -> dict[str, np.ndarray]:
    shape = draw(array_shapes(min_dims=3, max_dims=3, min_side=2, max_side=7))
    shape = (draw(st.sampled_from([shape[0], 20])), *shape[1:])  # 20 images are two blocks
    levels = draw(st.integers(1, 40))
    values = arrays(np.uint8, shape, elements=st.integers(0, levels)).map(lambda a: (a / levels).astype(np.float32))
    fire = draw(arrays(bool, shape))
    image = draw(st.integers(0, shape[0] - 1))
    fire[image, 0, 0] = True
    stacks = {f"{method}_{kind}": draw(values) for method in METHODS for kind in ("prob", "unc")}
    stacks["student_prob"][image, 0, :2] = 1, 0  # else every error is of one kind
    return {"y": fire, **stacks, "fire_id": np.arange(shape[0]) // 2}


@pytest.mark.filterwarnings("ignore::fcer.errors.UndefinedMetricWarning")
@settings(max_examples=4)
@given(predicted(), st.integers(0, 4), st.integers(0, 4), st.integers(0, 9))
def test_padding_changes_no_number(stacks, rows, columns, seed):
    options = {"bootstrap": 5, "radii": [0, 2.5], "anchor": 1.5, "progress": None}
    plain = evaluate(PredictedMaps.from_arrays(stacks, year=2018), **options)
    grown = evaluate(PredictedMaps.from_arrays(padded(stacks, rows, columns, seed), year=2018), **options)
    assert_same_tables(grown, plain)


def test_golden_maps_with_padding_give_the_golden_numbers(tmp_path):
    expected = json.loads((GOLDEN / "fcer_expected.json").read_text())
    paths = []
    for year in expected["years"]:
        with np.load(GOLDEN / f"predictions_{year}.npz") as stored:
            grown = padded(dict(stored), 5, 9, seed=year)
        paths.append(tmp_path / f"predictions_{year}.hdf5")
        write_maps(paths[-1], PredictedMaps.from_arrays(grown, year=year))
    found = evaluate_files(paths, bootstrap=0)
    for (year, method), curve in found.sweep.query("method != 'probability'").groupby(["year", "method"]):
        for metric, tolerance in (("auroc", 1e-9), ("auprc", 1e-9), ("brier", 1e-6), ("nll", 1e-6)):
            golden = expected["sweep"][str(year)][method][metric]
            np.testing.assert_allclose(curve[metric], golden, rtol=0, atol=tolerance)
    for row in found.segmentation.query("method != 'probability'").to_dict("records"):
        assert row["asd_m"] == pytest.approx(expected["asd_m"][str(row["year"])][row["method"]], abs=1e-6)


def ragged_arrays(n_images: int = 40, side: int = 26) -> dict[str, np.ndarray]:
    """Fires that run into every edge of images of many sizes; the first block's are all as large as the arrays."""
    rng = np.random.default_rng(1)
    size = rng.integers(12, side, (n_images, 2), endpoint=True)
    size[:16] = side
    rows, columns = np.mgrid[:side, :side]
    inside = (rows < size[:, 0, None, None]) & (columns < size[:, 1, None, None])
    centre = rng.uniform(0, 1, (n_images, 2)) * size
    depth = rng.uniform(3, 7, (n_images, 1, 1)) - np.hypot(*(centre.T[..., None, None] - (rows[None], columns[None])))
    stacks = {"y": (depth + rng.standard_normal(depth.shape) > 0) & inside, "size": size}
    stacks["y"][5] = False
    for method in METHODS:
        prob = 1 / (1 + np.exp(-depth - rng.standard_normal(depth.shape) * 1.5))
        unc = np.round(4 * prob * (1 - prob) * rng.uniform(0.3, 1, prob.shape), 2)
        stacks |= {f"{method}_prob": prob.astype(np.float32), f"{method}_unc": unc.astype(np.float32)}
    return stacks


def test_images_of_many_sizes_by_the_book():
    stacks = ragged_arrays()
    found = evaluate(PredictedMaps.from_arrays(stacks, year=2018), bootstrap=0, progress=None)
    cut = {
        name: [image[:rows, :columns] for image, (rows, columns) in zip(stack, stacks["size"], strict=True)]
        for name, stack in stacks.items()
        if name != "size"
    }
    pooled = {name: np.concatenate([image.ravel() for image in images]) for name, images in cut.items()}
    burning = [k for k, fire in enumerate(cut["y"]) if fire.any()]
    wrong = [(prob > 0.5) != fire for prob, fire in zip(cut["student_prob"], cut["y"], strict=True)]
    for method in METHODS:
        prob, unc = cut[f"{method}_prob"], cut[f"{method}_unc"]
        row = found.segmentation.set_index("method").loc[method]
        assert row["ap"] == pytest.approx(average_precision_score(pooled["y"], pooled[f"{method}_prob"]), abs=1e-12)
        hits = pooled["y"] & (pooled[f"{method}_prob"] > 0.5)
        assert row["precision"] == pytest.approx(hits.sum() / (pooled[f"{method}_prob"] > 0.5).sum())
        distances = [plain_asd(prob[k] > 0.5, cut["y"][k]) for k in burning if (prob[k] > 0.5).any()]
        assert row["asd_m"] == pytest.approx(375 * np.mean(distances), abs=1e-9)
        curve = found.sweep[found.sweep["method"] == method].set_index("radius_px")
        for radius in RADII:
            regions = {k: plain_region(cut["y"][k], radius) for k in burning}
            pixels = [
                np.concatenate([images[k][regions[k]] for k in burning]) for images in (cut["y"], wrong, prob, unc)
            ]
            ours = curve.loc[radius, ["auroc", "auprc", "brier", "nll"]]
            np.testing.assert_allclose(ours.astype(float), plain_scores(*pixels), atol=1e-12)
            assert curve.loc[radius, "n_pixels"] == pixels[0].size
        images = found.per_image[found.per_image["method"] == method]
        scores = [plain_image_scores(cut["y"][k][None], wrong[k][None], unc[k][None], 4)[0] for k in burning]
        np.testing.assert_allclose(images[["auroc", "auprc"]], scores, atol=1e-12)


def test_the_edge_of_an_image_is_no_boundary_with_padding_or_without():
    fire, predicted = np.zeros((2, 1, 8, 9), bool)
    fire[0, 4:8, 5:9] = True  # into the corner
    predicted[0, 3:8, 6:9] = True
    alone = surface_losses(predicted, fire)
    grow = ((0, 0), (0, 3), (0, 2))
    inside = np.pad(np.ones((1, 8, 9), bool), grow)
    together = surface_losses(np.pad(predicted, grow), np.pad(fire, grow), inside)
    assert (together.asd, together.hausdorff95) == (alone.asd, alone.hausdorff95)
    assert surface_losses(np.pad(predicted, grow), np.pad(fire, grow)).asd != alone.asd, "else this tests nothing"
