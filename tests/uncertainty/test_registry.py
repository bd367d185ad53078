"""Methods by name: ours, and those of other packages, which may be broken."""

import sys
from pathlib import Path

import numpy as np
import pytest

from fcer.config.checks import METHODS, methods
from fcer.errors import ConfigError, FcerWarning
from fcer.uncertainty import registry
from fcer.uncertainty.registry import Method, installed_methods, method_named

PLUG_IN = """
import numpy as np

class Constant:  # fits the protocol without importing it
    control = False
    ranks = True
    def prob(self, seen): return seen.prob_BHW
    def unc(self, seen): return np.full_like(seen.prob_BHW, 0.25)
    def passes(self, predictors): return 7
    def check(self, predictors): pass

class Half:
    def unc(self, seen): return None
"""


@pytest.fixture
def plug_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Install a package that names these entry points."""

    def install(**named: str) -> None:
        (tmp_path / "their_package.py").write_text(PLUG_IN)
        facts = tmp_path / "their_package-1.0.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in named.items()]
        (facts / "entry_points.txt").write_text("\n".join(["[fcer.methods]", *lines, ""]))
        monkeypatch.syspath_prepend(tmp_path)
        registry.method.__dict__.pop("brought", None)

    yield install
    sys.modules.pop("their_package", None)
    registry.method.__dict__.pop("brought", None)


def test_every_method_of_ours_is_registered_and_known_to_the_configuration():
    assert tuple(installed_methods())[: len(METHODS)] == METHODS
    assert set(registry.method.own) == set(METHODS)
    assert all(isinstance(method, Method) for method in installed_methods().values())


def test_controls_and_baselines_say_so():
    found = installed_methods()
    assert [name for name in METHODS if found[name].control] == [
        *("random", "boundary_distance", "today_distance", "probability")
    ]
    assert [name for name in METHODS if not found[name].ranks] == ["persistence"]


def test_a_method_of_another_package_is_found(plug_ins):
    assert methods(["constant"]).startswith("there is no method constant; choose among student, ")
    plug_ins(constant="their_package:Constant")
    assert methods(["student", "constant"]) is None
    found = method_named("constant")
    assert found.passes(None) == 7
    seen = type("Seen", (), {"prob_BHW": np.ones((1, 2, 2))})()
    assert np.array_equal(found.unc(seen), np.full((1, 2, 2), 0.25))
    assert tuple(installed_methods()) == (*METHODS, "constant")


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("gone", "their_package:Gone", "module 'their_package' has no attribute 'Gone'"),
        ("nowhere", "no_such_package:Method", "No module named 'no_such_package'"),
        ("half", "their_package:Half", "it lacks an attribute of fcer.uncertainty.registry.Method; subclass that"),
        ("student", "their_package:Constant", "the name is taken"),
    ],
)
def test_a_broken_plug_in_is_named_and_left_out(plug_ins, name: str, value: str, reason: str):
    plug_ins(**{name: value, "constant": "their_package:Constant"})
    with pytest.warns(FcerWarning) as warned:
        found = installed_methods()
    assert [str(one.message) for one in warned] == [f"methods: {name} ({value}) is left out: {reason}"]
    assert tuple(found) == (*METHODS, "constant")
    if name != "student":
        with pytest.raises(ConfigError, match=f"^methods: there is no method {name}; choose among student, "):
            method_named(name)
