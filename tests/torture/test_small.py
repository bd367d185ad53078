"""The fault suite in small: some cases of every class that needs no network model, run as `make torture` runs them."""

from pathlib import Path

import pytest

from .corpus import run_class
from .sound import make_sound

CLASSES = ["npz", "hdf5 maps", "geotiff"]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", "")  # put back afterwards: sound inputs have a store of their own
        make_sound(folder)
        yield folder


@pytest.mark.parametrize("name", CLASSES)
def test_malformed_input_is_one_sentence(name: str, sound: Path, tmp_path: Path):
    outcomes = list(run_class(name, 7, range(4), sound, tmp_path / "case"))
    assert len(outcomes) == 4
    assert [outcome for outcome in outcomes if outcome.failure] == []
