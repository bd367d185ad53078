from pathlib import Path

import pytest

from fcer.data.dataset import Dataset, open_dataset
from fcer.data.synthetic.fires import Recipe, synthesize
from fcer.models.members import Member
from fcer.training.feature_cache import FeatureCache, cache_features
from fcer.training.teaching import Teaching
from teaching_cases import make_teaching, save_members
from training_cases import FEATURES, YEARS, tiny_data

TINY = Recipe(years=YEARS, fires_per_year=2, image_size=(34, 40), fire_days=(8, 9), seed=5)


@pytest.fixture(scope="session")
def tiny_fires(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four years of two fires each; tests only read them."""
    root = tmp_path_factory.mktemp("tiny_fires")
    synthesize(TINY, root, workers=1)
    return root


@pytest.fixture(scope="session")
def tiny(tiny_fires: Path) -> Dataset:
    return tiny_data(tiny_fires)


@pytest.fixture(scope="session")
def short(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Fires of four days: enough for one day and its label, not for five."""
    root = tmp_path_factory.mktemp("short_fires")
    synthesize(Recipe(YEARS, fires_per_year=1, image_size=(34, 34), fire_days=(4, 4), seed=5), root, workers=1)
    return open_dataset(root, YEARS, features=FEATURES, crop=32, cache=root / "cache", workers=1)


@pytest.fixture(scope="session")
def members(tiny: Dataset, tmp_path_factory: pytest.TempPathFactory) -> list[Member]:
    """Three members that were never trained; tests only read them."""
    return save_members(tmp_path_factory.mktemp("members"), tiny)


@pytest.fixture(scope="session")
def teaching(tiny: Dataset, members: list[Member]) -> Teaching:
    return make_teaching(tiny, members)


@pytest.fixture(scope="session")
def cached(teaching: Teaching, tmp_path_factory: pytest.TempPathFactory) -> FeatureCache:
    return cache_features(teaching, tmp_path_factory.mktemp("features"))
