"""The examples of docs/design.md as an installed package: a study with one of each, and what becomes of broken ones."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fcer import Study, configure
from fcer.core.fire_counts import FireCounts
from fcer.core.recalibration import Recalibration
from fcer.core.recalibration_fits import choose_recalibration
from fcer.data.catalog import open_catalog, open_fires
from fcer.data.inspection import inspect
from fcer.data.synthetic.fires import synthesize
from fcer.errors import CheckpointError, ConfigError, DataError, FcerWarning
from fcer.models.backbones import build
from fcer.models.calibration_files import load_calibration
from fcer.models.packed import PackedBackbone
from fcer.models.student_files import load_student, read_head_info
from plug_in_package import DOORS, EXAMPLES, NAMED, installed, write_package
from study_settings import RECIPE, TINY


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_package(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def arrays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study's fires in a form that only the package can read."""
    folder = tmp_path_factory.mktemp("arrays")
    synthesize(RECIPE, folder / "ours", workers=1)
    for fire in open_catalog(folder / "ours").fires:
        np.save(folder / f"{fire.year}-{fire.name}.npy", fire.read(slice(None), range(23)))
    return folder


@pytest.fixture(scope="module")
def studied(package: Path, arrays: Path, tmp_path_factory: pytest.TempPathFactory):
    """A study with one of each: its results, what it said, and the student's folder."""
    said: list[str] = []
    settings = {**TINY, "arch": "one_layer", "methods": ("student", "ensemble", "edge", "density"), "miss": (0.5,)}
    few = pytest.warns(FcerWarning, match=r"too few fires to guarantee a miss of 0\.5 of widened zones \(1 fire\)")
    with installed(package), few:
        study = Study(configure(data=arrays, work=tmp_path_factory.mktemp("work"), **settings), say=said.append)
        return study.evaluation(), said, study.student(2021).folder


def test_a_study_runs_with_one_of_each(studied):
    results, said, folder = studied
    assert {"student", "ensemble", "edge", "density"} <= set(results.anchor["method"])
    assert folder.name.startswith("one_layer-2021-")
    assert any("candidate" in line and ", halves " in line for line in said), "it took part in the calibration"


def test_what_was_made_says_what_is_missing_and_needs_no_calibrator(studied, package: Path, arrays: Path):
    folder = studied[2]
    calibration = load_calibration(folder, read_head_info(folder).key)
    assert calibration is not None and calibration.calibrators == ("halves of their-package 1.0",)
    with pytest.raises(
        CheckpointError, match=r"backbone.safetensors: its header cannot be used \(arch 'one_layer' is "
    ):
        load_student(folder)
    with pytest.raises(DataError, match="no folder named by a year in it"):
        open_catalog(arrays)
    with installed(package):
        assert load_student(folder).student.backbone.spec.arch == "one_layer"


def test_names_are_known_where_the_package_is(package: Path):
    with pytest.raises(ConfigError, match=r"'one_layer', but should be one of utae_t5, unet_t5, unet_t1$"):
        configure(arch="one_layer")
    with installed(package):
        assert configure(arch="one_layer", methods=["edge"]).config.arch == "one_layer"
        with pytest.raises(ConfigError, match="one of utae_t5, unet_t5, unet_t1, one_layer; did you mean one_layer"):
            configure(arch="one_leyer")
        with pytest.raises(ConfigError, match="packed puts U-Nets into one network, and one_layer is"):
            PackedBackbone(build("one_layer").spec, 2)


def test_help_lists_what_is_installed_and_imports_none_of_it(package: Path):
    code = "import sys, fcer.cli\ntry: fcer.cli.main(sys.argv[1:])\nfinally: print(*sys.modules, file=sys.stderr)"
    environment = {**os.environ, "PYTHONPATH": str(package), "COLUMNS": "200"}
    listed = {}
    for words in (("--help",), ("evaluate", "--help-all")):
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, env=environment)
        assert done.returncode == 0 and not {"their_package", "torch", "numpy"} & set(done.stderr.split())
        listed[words] = done.stdout
    for door, name in (("methods", "edge"), ("backbones", "one_layer"), ("datasets", "npy"), ("calibrators", "halves")):
        assert f"{door} of other packages: {name}\n" in listed["--help",]
    for line in ("(default: utae_t5); of other packages: one_layer", "; of other packages: edge"):
        assert line in " ".join(listed["evaluate", "--help-all"].split())


def test_a_folder_of_another_form_is_inspected(package: Path, arrays: Path, tmp_path: Path):
    with installed(package):
        found = inspect(arrays, features=(0, 39), crop=32, cache=tmp_path, workers=1)
        assert [year.year for year in found.years] == list(RECIPE.years) and not found.problems
        assert len(open_fires(arrays).fires) == 8
        reads = np.concatenate([fire.read(slice(0, 2), [22, 3]) for fire in open_catalog(arrays, [2018]).fires][:1])
    ours = open_catalog(arrays / "ours", [2018]).fires[0]
    assert np.array_equal(reads, ours.read(slice(0, 2), [22, 3]), equal_nan=True)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.group)
def test_a_broken_plug_in_is_named_and_left_out(door, tmp_path: Path):
    (good,) = NAMED[door.group].items()
    taken = {"fcer.backbones": {"unet_t1": good[1]}, "fcer.calibrators": {"platt": good[1]}}.get(door.group, {})
    broken = {"gone": "their_package:Gone", "half": "their_package:Half", **taken}
    code = EXAMPLES + "\nclass Half: pass\n"
    with installed(write_package(tmp_path, {door.group: {**broken, good[0]: good[1]}}, code)):
        with pytest.warns(FcerWarning) as warned:
            found = door.installed
        assert good[0] in found and not {"gone", "half"} & set(found)
    reasons = dict(str(one.message).split(" is left out: ") for one in warned)
    name = door.group.removeprefix("fcer.")
    assert reasons.keys() == {f"{name}: {key} ({value})" for key, value in broken.items()}
    assert "no attribute 'Gone'" in reasons[f"{name}: gone (their_package:Gone)"]
    assert reasons[f"{name}: half (their_package:Half)"].startswith("it ")
    assert all("the name is taken" in reasons[f"{name}: {key} ({value})"] for key, value in taken.items())


def test_a_broken_fire_of_another_form_is_told_of(tmp_path: Path, arrays: Path):
    code = (
        EXAMPLES
        + """
from fcer.errors import DataError
class Some(NpyReader):
    def fires(self, path):
        first, *rest = super().fires(path)
        return [DataError(f"{first.path}: torn; draw it again"), *rest]
"""
    )
    with installed(write_package(tmp_path, {"fcer.datasets": {"some": "their_package:Some"}}, code)):
        found = open_catalog(arrays)
    assert len(found.fires) == 7 and [problem.split(": ")[1] for problem in found.problems] == ["torn; draw it again"]


def test_a_reader_that_fails_to_recognise_is_left_out(tmp_path: Path, arrays: Path):
    code = EXAMPLES + "\nclass Fails(NpyReader):\n    def recognises(self, path):\n        raise KeyError('what')\n"
    package = write_package(tmp_path, {"fcer.datasets": {"fails": "their_package:Fails"}}, code)
    with installed(package), pytest.warns(FcerWarning, match="^datasets: fails is left out: 'what'$"):
        assert len(open_catalog(arrays / "ours").fires) == 8


class Cliff:
    """What isotonic, with its straight lines between the middles of steps, can only come near to."""

    def fit(self, prob, pixels, burnt):
        return [(0, 0.05), (0.5, 0.05), (0.5, 0.95), (1, 0.95)]


def _counts(rate) -> FireCounts:
    rng, counts = np.random.default_rng(0), FireCounts.empty(20)
    for fire in range(20):
        x = rng.uniform(0, 1, 5_000)
        counts.add(fire, x, rng.uniform(0, 1, x.size) < rate(x))
    return counts


@pytest.mark.parametrize(
    ("rate", "chosen"),
    [(lambda x: np.where(x < 0.5, 0.05, 0.95), "cliff"), (lambda x: x, "none")],
    ids=["cliff", "none"],
)
def test_a_calibrator_is_chosen_where_it_is_better_and_nowhere_else(rate, chosen: str):
    counts = _counts(rate)
    choice = choose_recalibration(counts, others={"cliff": Cliff()})
    assert choice.recalibration.kind == chosen
    ours = {kind: nll for kind, nll in choice.nll.items() if kind != "cliff"}
    assert ours == choose_recalibration(counts).nll, "another candidate changes nobody else's score"
    stored = Recalibration.from_dict(choice.recalibration.to_dict())
    assert stored == choice.recalibration and stored.apply([0.3])[0] == (0.05 if chosen == "cliff" else 0.3)


@pytest.mark.parametrize("knots", [[(0, 1), (1, 0)], [(0, 0), (1, 2)], [(0, float("nan"))], [], None])
def test_a_calibrator_that_gives_nonsense_is_named_and_left_out(knots: object):
    nonsense, counts = type("Nonsense", (), {"fit": lambda *_: knots}), _counts(lambda x: x)
    with pytest.warns(FcerWarning, match=r"^calibrators: nonsense cannot be fitted \(.*\); it is left out$"):
        choice = choose_recalibration(counts, others={"nonsense": nonsense(), "cliff": Cliff()})
    assert choice == choose_recalibration(counts, others={"cliff": Cliff()})
