"""The search space: what a file may say, what it may not, and settings from a trial's values."""

from pathlib import Path

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcer.config.fields import fields
from fcer.config.resolve import resolve
from fcer.config.settings import Config
from fcer.errors import ConfigError
from fcer.search.results import settings_yaml
from fcer.search.space import read_space

EXPERIMENT = Path(__file__).parents[2] / "experiments" / "search_head.yaml"


def space_of(folder: Path, text: str):
    file = folder / "space.yaml"
    file.write_text(text)
    return read_space(file)


def test_the_default_is_the_experiment():
    assert read_space(None) == read_space(EXPERIMENT)


def test_the_paper_setting_is_the_configuration_of_the_defaults():
    space = read_space(None)
    settings = space.settings(space.paper())
    assert settings == {key: getattr(Config(), key) for key in settings}
    assert len(settings) == 10 and "head_hidden" in settings


@given(seed=st.integers(0, 2**32 - 1))
def test_every_trial_is_a_valid_configuration_that_reads_back(seed: int, tmp_path_factory: pytest.TempPathFactory):
    space = read_space(None)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    params = space.suggest(study.ask())
    assert ("head_hidden.width" in params) == (params["head_hidden.layers"] > 0)
    settings = space.settings(params)
    file = tmp_path_factory.getbasetemp() / "settings.yaml"
    file.write_text(settings_yaml(settings, "a trial"))
    assert {key: getattr(resolve(file).config, key) for key in settings} == settings


def test_a_list_is_a_choice_too(tmp_path: Path):
    space = space_of(tmp_path, "head_hidden: {categorical: [[], [8], [16, 8]]}")
    assert space.paper() == {"head_hidden": "[]"}
    assert space.settings({"head_hidden": "[16, 8]"}) == {"head_hidden": (16, 8)}


def test_a_grid_has_each_combination_once_and_the_paper_first(tmp_path: Path):
    space = space_of(
        tmp_path,
        "head_epochs: {int: [50, 150], step: 50}\n"
        "head_loss: {categorical: [rmsle, mse]}\n"
        "head_momentum: {float: [0.0, 0.9], step: 0.9, when: {head_loss: rmsle}}\n",
    )
    points = list(space.grid())
    assert points[0] == {"head_epochs": 100, "head_loss": "rmsle", "head_momentum": 0.9} == space.paper()
    assert len(points) == 3 * (2 + 1) == len({tuple(point.items()) for point in points})


def test_a_grid_of_decimal_steps_meets_the_papers_value_once(tmp_path: Path):
    space = space_of(tmp_path, "head_momentum: {float: [0.0, 0.9], step: 0.3}")
    assert [point["head_momentum"] for point in space.grid()] == [0.9, 0.0, 0.3, 0.6]


BAD = {
    "head_lr: {float: [0.1, 0.01]}": "head_lr: the range from 0.1 to 0.01 is empty; give the smaller number first",
    "head_lr: {float: [0.1, 0.1]}": "head_lr: the range from 0.1 to 0.1 is empty; give the smaller number first",
    "head_weight_decay: {float: [0, 0.1], log: true}": "a log scale cannot begin at 0; begin above 0, or leave log out",
    "head_lr: {float: [0.0001, 1.0], log: 1}": "log is 1, but should be true or false",
    "head_lr: {float: [1e-4, 1.0]}": "head_lr is '1e-4', but should be a number; write 0.001 for 1e-3",
    "head_lr: {float: [0.0001]}": "float should be [low, high], but has 1 values",
    "head_lr: {float: 0.1}": "float is 0.1, but should be a list, such as [low, high] or the choices",
    "head_lr: {int: [1, 2]}": "cannot be searched as int; use float",
    "head_hidden: {int: [1, 2]}": "use categorical, or head_hidden.layers and head_hidden.width",
    "head_lr: 0.1": "say how it is searched, with one of float, int, categorical: [...]",
    "head_lr: {float: [0.0001, 1.0], step: 0.3}": "steps of 0.3 do not lead from 0.0001 to 1; change one of the three",
    "head_epochs: {int: [20, 100], log: true, step: 20}": "a log scale has no steps; leave out log or step",
    "head_epochs: {int: [20, 100], step: 0.5}": "step is 0.5, but should be a number above 0, whole for int",
    "head_momentum: {float: [0.0, 1.5]}": "head_momentum is 1.5, but should be at most 0.9999",
    "head_loss: {categorical: [rmsle, mae]}": "head_loss is 'mae', but should be one of rmsle, mse, bce",
    "head_loss: {categorical: [rmsle, rmsle]}": "a choice is there twice; name each once",
    "head_loss: {categorical: []}": "categorical is [], but should be a list",
    "head_loss: {categorical: [rmsle], log: true}": "`log` means nothing beside categorical; leave it out",
    "head_loss: {categorical: [mse, bce]}": "begins with the paper's setting, and its rmsle is not among these; add it",
    "head_lr: {float: [0.01, 1.0]}": "begins with the paper's setting, and its 0.001 is not among these; add it",
    "head_epochs: {int: [10, 110], step: 20}": "and its 100 is not among these; add it",
    "head_lrr: {float: [0.0001, 1.0]}": "`head_lrr` is no setting of the head; did you mean `head_lr`?",
    "member_lr: {float: [0.0001, 1.0]}": "`member_lr` is no setting of the head",
    "head_hidden.layers: {int: [0, 2]}": "head_hidden.width is missing",
    "head_hidden.layers: {int: [0, 2]}\nhead_hidden.width: {int: [4, 8]}": "add when: {head_hidden.layers: [1, 2]}",
    "head_loss: {categorical: [rmsle], when: {head_lr: 1}}": "when names `head_lr`, which does not stand above it",
    "head_logit: {categorical: [false, true]}\nhead_loss: {categorical: [rmsle, mse], when: {head_logit: 1}}": (
        "head_logit is 1, but should be true or false"
    ),
    "head_loss: {categorical: [rmsle, mse]}\nhead_power: {float: [0, 2], when: {head_loss: bce}}": (
        "when wants head_loss to be 'bce', which never comes up there"
    ),
    "head_lr: {float: [0.0001, 1.0]}\nhead_lr: {float: [0.0001, 1.0]}": "`head_lr` is there twice",
    "- head_lr": "should hold `key: value` lines, but holds list",
    "": "names nothing to search",
}


@pytest.mark.parametrize(("text", "reason"), BAD.items())
def test_a_bad_space_is_one_sentence_that_names_the_file(text: str, reason: str, tmp_path: Path):
    with pytest.raises(ConfigError) as raised:
        space_of(tmp_path, text)
    assert reason in str(raised.value)
    assert str(raised.value).startswith(str(tmp_path / "space.yaml")) and "\n" not in str(raised.value)


def test_every_setting_of_the_head_can_be_searched(tmp_path: Path):
    names = [key for key in fields() if key.startswith("head_")]
    lines = []
    for name in names:
        default = fields()[name].default
        choices = [list(default)] if isinstance(default, tuple) else [default]
        lines.append(f"{name}: {{categorical: {str(choices).lower()}}}")
    space = space_of(tmp_path, "\n".join(lines))
    assert set(space.settings(space.paper())) == set(names)
