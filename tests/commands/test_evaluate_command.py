"""`fcer evaluate --predictions`: files from anywhere in, the golden numbers out."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fcer

GOLDEN = Path(__file__).parent.parent / "data" / "golden"
FILES = [GOLDEN / f"predictions_{year}.npz" for year in (2018, 2019)]
EXPECTED = json.loads((GOLDEN / "fcer_expected.json").read_text())


@pytest.fixture
def results(fcer_main, tmp_path: Path) -> Path:
    code, out, err = fcer_main("evaluate", "--predictions", *FILES, "--out", tmp_path / "out", "--bootstrap", "100")
    assert (code, err) == (0, "")
    assert "student > ensemble, AUROC per image: n 14" in out
    assert f"\nwritten to {tmp_path / 'out'}: sweep.csv, segmentation.csv, per_image.csv, tests.json and more\n" in out
    assert out.endswith(f"next: fcer report --results {tmp_path / 'out'}, or make ui to compare the runs\n")
    return tmp_path / "out"


def test_the_sweep_on_disk_is_the_golden_one(results: Path):
    sweep = pd.read_csv(results / "sweep.csv")
    columns = ["year", "method", "radius_px", "radius_m", "auroc", "auprc", "brier", "nll", "n_pixels", "n_errors"]
    assert list(sweep.columns[:11]) == [*columns, "prevalence"]
    for year, methods in EXPECTED["sweep"].items():
        for method, metrics in methods.items():
            rows = sweep[(sweep.year == int(year)) & (sweep.method == method)]
            assert rows.radius_px.tolist() == [*range(11), math.inf]
            assert rows.radius_m.tolist() == [375.0 * r for r in range(11)] + [math.inf]
            for metric, tolerance in (("auroc", 1e-9), ("auprc", 1e-9), ("brier", 1e-6), ("nll", 1e-6)):
                np.testing.assert_allclose(rows[metric], metrics[metric], rtol=0, atol=tolerance)


def test_columns_of_the_other_files(results: Path):
    segmentation = pd.read_csv(results / "segmentation.csv")
    assert list(segmentation.columns[:10]) == [
        *("year", "method", "ap", "precision", "recall"),
        *("asd_m", "asd_images", "asd_common_m", "fire_images", "missed"),
    ]
    per_image = pd.read_csv(results / "per_image.csv")
    assert list(per_image.columns[:7]) == ["year", "index", "fire_id", "method", "auroc", "auprc", "auroc_within"]
    tests = json.loads((results / "tests.json").read_text())
    wanted = [
        "metric",
        "scope",
        "unit",
        "a",
        "b",
        "n",
        "n_nonzero",
        "w_plus",
        "w_minus",
        "p",
        "rank_biserial",
        "median_delta",
    ]
    assert all(list(test)[:12] == wanted for test in tests)
    assert (tests[0]["a"], tests[0]["b"]) == ("student", "ensemble")
    assert {test["scope"] for test in tests} == {"2018", "2019", "pooled"}


def test_other_radii_anchors_and_references(fcer_main, tmp_path: Path):
    code, out, _ = fcer_main(
        *("evaluate", "--predictions", FILES[0], "--out", "out", "--bootstrap", "0"),
        *("--radii", "0.5", "750m", "--anchor", "1500m", "--reference", "ensemble"),
    )
    assert code == 0 and "errors of ensemble" in out
    assert set(pd.read_csv(tmp_path / "out" / "sweep.csv").radius_px) == {0.5, 2.0, math.inf}
    code, out, _ = fcer_main("evaluate", "--predictions", FILES[0], "--anchor", "auto", "--bootstrap", "0")
    assert code == 0 and "the mean ASD of ensemble" in out
    assert (tmp_path / "work" / "results" / "2018" / "tests.json").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--reference", "oracle"], "reference: there is no method 'oracle'; choose one of "),
        (["--anchor", "near"], "--anchor: anchor is 'near': give px from 0 on, metres such as 1500m, or auto"),
        (["--anchor", "-1"], "--anchor: anchor is -1"),
        (["--radii", "0", "far"], "--radii: radii is [0, 'far']: give px from 0 on, metres such as 1500m, or full"),
    ],
)
def test_bad_options_are_one_line(options: list[str], sentence: str, fcer_main):
    code, _, err = fcer_main("evaluate", "--predictions", FILES[0], "--bootstrap", "0", *options)
    assert code == 2
    assert err.startswith(f"fcer: {sentence}") and err.count("\n") == 1


def change(**arrays: object):
    def malformed(path: Path) -> None:
        with np.load(FILES[0]) as stored:
            content = {name: stored[name] for name in stored} | arrays
        np.savez(path, **{name: array for name, array in content.items() if array is not None})

    return malformed


def truncated(path: Path) -> None:
    path.write_bytes(FILES[0].read_bytes()[:50_000])


def nothing(path: Path) -> None:
    path.write_text("year,method,auroc\n")


MAPS = np.load(FILES[0])
BAD = {
    "missing y": change(y=None),
    "shapes differ": change(student_unc=MAPS["student_unc"][:, :64]),
    "NaN": change(student_prob=np.where(MAPS["student_prob"] > 0.9, np.nan, MAPS["student_prob"])),
    "outside [0,1]": change(ensemble_unc=MAPS["ensemble_unc"] + 1),
    "non-binary y": change(y=MAPS["y"] * 2),
    "unclaimed array": change(weights=np.zeros(3)),
    "prob without unc": change(ensemble_unc=None),
    "no fire": change(y=np.zeros_like(MAPS["y"])),
    "truncated": truncated,
    "no npz": nothing,
}


@pytest.mark.parametrize("malformed", BAD.values(), ids=BAD.keys())
def test_a_malformed_file_ends_with_exit_code_2_and_one_sentence(malformed, fcer_main, tmp_path: Path):
    path = tmp_path / "predictions_2018.npz"
    malformed(path)
    code, out, err = fcer_main("evaluate", "--predictions", path, "--out", "out")
    assert (code, out) == (2, "")
    assert err.startswith("fcer: ") and str(path) in err and err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_public_functions_are_there_when_asked_for():
    assert {"evaluate", "sweep", "open_maps", "write_maps"} <= set(fcer.__all__)
    for name in fcer.__all__:
        assert getattr(fcer, name) is not None
    with pytest.raises(AttributeError, match="module 'fcer' has no attribute 'evalute'"):
        _ = fcer.evalute
