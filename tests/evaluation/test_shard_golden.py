"""The golden values shard by shard, from Python and on the command line."""

import json
from pathlib import Path

import numpy as np
import pytest

from fcer.errors import ConfigError
from fcer.evaluation import Results, evaluate_files, shards

GOLDEN = Path(__file__).parent.parent / "data" / "golden"
EXPECTED = json.loads((GOLDEN / "fcer_expected.json").read_text())
FILES = [GOLDEN / f"predictions_{year}.npz" for year in EXPECTED["years"]]


@pytest.fixture(scope="module")
def golden() -> Results:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "_IMAGES", 4)
        return evaluate_files(FILES, engine="shards", bootstrap=0)


def test_golden_numbers(golden):
    bounds = {"auroc": golden.settings.auroc_bound, "auprc": golden.settings.auprc_bound, "brier": 1e-6, "nll": 1e-6}
    assert bounds["auroc"] < 1e-3 and bounds["auprc"] < 1e-2
    for (year, method), curve in golden.sweep.groupby(["year", "method"]):
        for metric, tolerance in bounds.items():
            if method == "probability":
                continue
            expected = EXPECTED["sweep"][str(year)][method][metric]
            np.testing.assert_allclose(curve[metric], expected, rtol=0, atol=tolerance)
    for k, year in enumerate(EXPECTED["years"]):
        expected = EXPECTED["asd_m"][str(year)]
        for row in golden.segmentation.query("year == @year and method != 'probability'").to_dict("records"):
            assert row["ap"] == pytest.approx(EXPECTED["ap"][row["method"]][k], abs=bounds["auprc"])
            assert row["asd_m"] == pytest.approx(expected[row["method"]], abs=1e-6)
            assert row["missed"] == expected[f"missed_{row['method']}"]


def test_golden_images_and_tests(golden):
    for (year, method), rows in golden.per_image.query("method != 'probability'").groupby(["year", "method"]):
        for metric in ("auroc", "auprc"):
            expected = EXPECTED["per_image_r4"][str(year)][f"{metric}_{method}"]
            np.testing.assert_allclose(rows[metric].dropna(), expected, rtol=0, atol=1e-9)
    pooled = golden.tests.query("scope == 'pooled' and unit == 'image' and b == 'ensemble'").set_index("metric")
    for metric, expected in EXPECTED["wilcoxon"].items():
        for name, value in expected.items():
            assert pooled.loc[metric, name] == pytest.approx(value, abs=1e-9)


def test_files_for_an_engine_that_is_none():
    with pytest.raises(ConfigError, match=r"^engine: there is no 'steam'; choose one of auto, exact, shards$"):
        evaluate_files(FILES, engine="steam")


def test_shards_on_the_command_line(fcer_main, tmp_path):
    code, out, _ = fcer_main(
        *("evaluate", "--predictions", *FILES, "--out", tmp_path / "out"),
        *("--engine", "shards", "--bootstrap", "0", "--workers", "1"),
    )
    assert code == 0
    settings = Results.read(tmp_path / "out").settings
    assert settings.engine == "shards" and 0 < settings.auroc_bound < 1e-3
    assert "\nranked by 16-bit codes, shard by shard: AUROC within " in out
    assert "student > ensemble, AUROC per image: n 14" in out


def test_an_unknown_engine_on_the_command_line(fcer_main):
    code, _, err = fcer_main("evaluate", "--predictions", FILES[0], "--engine", "steam")
    assert code == 2
    assert "engine" in err and "steam" in err and "shards" in err
