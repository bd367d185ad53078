"""A door for what others bring: by decorator in this process; by entry points, see tests/pipeline/test_plug_ins.py."""

import pytest

from fcer.runtime import doors
from fcer.runtime.doors import Door
from plug_in_package import installed, write_package

GROUP = "fcer.doors_of_this_test"


def test_what_is_registered_in_a_notebook_is_known_by_name():
    door: Door[object] = Door(GROUP, lambda name, kind: (name, kind()))
    assert doors.names(GROUP) == () and door.find("mine") is None

    @door("mine")
    class Mine:
        pass

    assert doors.names(GROUP) == ("mine",) and doors.signed(GROUP, "mine") == "mine"
    name, made = door.installed["mine"]
    assert name == "mine" and isinstance(made, Mine) and door.find("mine") is door.own["mine"]


def test_what_cannot_be_used_is_not_registered():
    def refuse(*_: object) -> object:
        raise TypeError("it lacks something")

    door: Door[object] = Door("fcer.refused_by_this_test", refuse)
    with pytest.raises(TypeError, match="it lacks something"):
        door("mine")(object)
    assert not door.own and doors.names(door.group) == ()


def test_another_packages_version_is_part_of_what_decides(tmp_path):
    assert doors.signed(doors.BACKBONES, "one_layer") == "one_layer"
    with installed(write_package(tmp_path)):
        assert doors.names(doors.BACKBONES) == ("one_layer",)
        assert doors.signed(doors.BACKBONES, "one_layer") == "one_layer of their-package 1.0"
        assert doors.signed(doors.BACKBONES, "unet_t1") == "unet_t1"
    assert doors.names(doors.BACKBONES) == ()
