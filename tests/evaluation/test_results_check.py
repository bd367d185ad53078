"""Results folders from anywhere: whole, of one evaluation, and what they say they are; else one sentence."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from fcer.errors import PredictionsError
from fcer.evaluation import evaluate
from fcer.evaluation.comparison import TEST_COLUMNS
from fcer.evaluation.results import Results, Settings
from fcer.evaluation.results_check import read_settings, read_table, read_tables, read_tests, with_digests
from fcer.maps.predicted_maps import PredictedMaps
from fcer.runtime.csv_cells import guarded


@pytest.fixture(scope="module")
def results() -> Results:
    rng = np.random.default_rng(0)
    shape = 6, 12, 12
    maps = {f"{m}_{k}": rng.random(shape, np.float32) for m in ("student", "other") for k in ("prob", "unc")}
    arrays = {"y": rng.random(shape) < 0.2, **maps, "fire_id": np.array(["007", "007", "NA", "-x", "b", "b"])}
    return evaluate(PredictedMaps.from_arrays(arrays, year=2018), bootstrap=20, radii=(0, 2))


@pytest.fixture
def folder(results: Results, tmp_path: Path) -> Path:
    results.write(tmp_path)
    stamp(tmp_path, asdict(results.settings))
    return tmp_path


def files(folder: Path) -> list[Path]:
    return [path for path in Results.files(folder) if path.name != "evaluation.json"]


def stamp(folder: Path, settings: dict) -> None:
    (folder / "evaluation.json").write_text(json.dumps(with_digests(settings, files(folder))))


def read(folder: Path) -> tuple[Settings, dict[str, pd.DataFrame]]:
    settings = read_settings(folder / "evaluation.json", files(folder), Settings)
    names = [path.stem for path in files(folder) if path.suffix == ".csv"]
    tables = read_tables(folder, settings, names)
    return settings, tables | {"tests": read_tests(folder / "tests.json", settings, TEST_COLUMNS)}


def refusal(folder: Path) -> str:
    with pytest.raises(PredictionsError) as refused:
        read(folder)
    said = str(refused.value)
    assert said.startswith(str(folder)) and said.endswith(f"; run fcer evaluate --out {folder} again")
    return said.removeprefix(f"{folder}/").partition(";")[0]


def test_what_was_written_is_read(folder: Path, results: Results):
    settings, tables = read(folder)
    assert settings == results.settings
    for name, table in tables.items():
        pd.testing.assert_frame_equal(table, getattr(results, name))


def test_guarded_cells_are_read_as_they_were(folder: Path, results: Results):
    guarded_ids = results.per_image.assign(fire_id=results.per_image["fire_id"].map(guarded))
    guarded_ids.to_csv(folder / "per_image.csv", index=False)
    stamp(folder, asdict(results.settings))
    assert "'-x" in (folder / "per_image.csv").read_text()
    assert read(folder)[1]["per_image"]["fire_id"].tolist() == results.per_image["fire_id"].tolist()


@pytest.mark.parametrize("name", ["sweep.csv", "tests.json", "risk_coverage.csv"])
def test_a_file_of_another_evaluation_or_cut_is_noticed(folder: Path, name: str):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-20])
    assert refusal(folder) == f"{name}: is damaged, or of another evaluation"
    (folder / name).unlink()
    assert refusal(folder) == f"{folder}: {name} is missing"


def test_settings_that_were_edited(folder: Path):
    path = folder / "evaluation.json"
    path.write_text(path.read_text().replace('"reference": "student"', '"reference": "other"'))
    assert refusal(folder) == "evaluation.json: was changed after it was written"
    path.write_text("{}")
    assert refusal(folder) == "evaluation.json: does not say which files it belongs to"
    for content in ("", "[1", "[" * 100_000, "\xff", '{"years": 1e999'):
        path.write_text(content, encoding="latin-1")
        assert refusal(folder) == "evaluation.json: cannot be read as JSON"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"reference": "zzz"}, "the reference zzz is not one of its methods"),
        ({"years": [1999]}, "is of the year 2018, which evaluation.json does not name"),
        ({"years": []}, "its years are not years"),
        ({"years": [-5]}, "its years are not years"),
        ({"years": "2018"}, 'years is "2018"'),
        ({"years": [True]}, "years is true"),
        ({"methods": ["student"]}, "is of the method other, which evaluation.json does not name"),
        ({"methods": ["student", "other", "probability", "third"]}, "does not hold every method in 2018"),
        ({"anchor_px": float("nan")}, "anchor_px is nan"),
        ({"anchor_px": "4"}, 'anchor_px is "4"'),
        ({"surprise": 1}, "surprise is missing or unknown"),
        ({"seed": None}, "seed is null"),
    ],
)
def test_settings_that_cannot_be(folder: Path, results: Results, change: dict, problem: str):
    stamp(folder, asdict(results.settings) | change)
    assert refusal(folder).endswith(f": {problem}")


def no_column(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns="auroc")


def words(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(auroc="high")


def another_year(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(year=1999)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (no_column, "has no column auroc"),
        (words, "has something else than numbers in the column auroc"),
        (another_year, "is of the year 1999, which evaluation.json does not name"),
    ],
)
def test_tables_that_cannot_be(folder: Path, results: Results, change: Callable, problem: str):
    change(results.sweep).to_csv(folder / "sweep.csv", index=False)
    stamp(folder, asdict(results.settings))
    assert refusal(folder) == f"sweep.csv: {problem}"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({}, "is not a list of tests with metric, scope, unit and so on"),
        ([1], "is not a list of tests with metric, scope, unit and so on"),
        ([{}], "is not a list of tests with metric, scope, unit and so on"),
        ({"p": "small"}, 'has "small" for p'),
        ({"metric": None}, "has null for metric"),
        ({"n": 10**30}, "counts what cannot be counted"),
        ({"n": None}, "counts what cannot be counted"),
        ({"a": "zzz"}, "compares zzz, which is not one of the methods in evaluation.json"),
    ],
)
def test_tests_that_cannot_be(folder: Path, results: Results, content: object, problem: str):
    path = folder / "tests.json"
    if isinstance(content, dict) and content:
        first, *rest = json.loads(path.read_text())
        content = [first | content, *rest]
    path.write_text(json.dumps(content))
    stamp(folder, asdict(results.settings))
    assert refusal(folder) == f"tests.json: {problem}"


@hypothesis_settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=200), st.text("year,method\n\"0;\x00é'", max_size=80).map(str.encode)))
def test_anything_in_place_of_a_table_is_one_sentence(tmp_path: Path, content: bytes):
    path = tmp_path / "sweep.csv"
    path.write_bytes(content)
    with pytest.raises(PredictionsError):
        read_table(path)
    with pytest.raises(PredictionsError):
        read_settings(path, [], Settings)
