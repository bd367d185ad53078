import dataclasses
import hashlib
import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from backbone_cases import days_of_fire, small_backbone
from fcer.errors import CheckpointError
from fcer.models.backbones import ARCHITECTURES, build
from fcer.models.checkpoints import CheckpointInfo, content_hash, load_checkpoint, read_info, save_checkpoint
from fcer.models.inference import fast

INFO = CheckpointInfo(
    arch="utae_t5",
    channels=3,
    width=0.125,
    fold=2,
    train_years=(2018, 2020),
    val_years=(2019,),
    test_years=(2021,),
    features=(0, 38, 39),
    mean=(0.1, 1e-17, -2.5),
    std=(1.0, 1 / 3, 7e20),
    val_ap=0.4321,
    dataset_fingerprint="5ca1ab1e",
    code_version="0.1.0",
    training_key="c0ffee",
)


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "members" / "fold2.safetensors"
    save_checkpoint(path, small_backbone("utae_t5"), INFO)
    return path


def with_header(path, header):
    """The same weights under another header."""
    other = path.with_name("other.safetensors")
    save_file(load_file(path), other, metadata=header)
    return other


def changed(**changes):
    return {"fcer": json.dumps({**dataclasses.asdict(INFO), **changes})}


@pytest.mark.parametrize("arch", list(ARCHITECTURES))
def test_weights_and_header_come_back(tmp_path, arch):
    backbone = small_backbone(arch)
    info = dataclasses.replace(INFO, arch=arch, fold=None, val_ap=None)
    save_checkpoint(tmp_path / "member.safetensors", backbone, info)
    loaded, read = load_checkpoint(tmp_path / "member.safetensors")
    assert read == info == read_info(tmp_path / "member.safetensors")
    assert loaded.spec == backbone.spec
    assert not loaded.training
    assert backbone.state_dict().keys() == loaded.state_dict().keys()
    x = days_of_fire(backbone)
    with torch.inference_mode():
        assert torch.equal(loaded(x), backbone(x))


SMALL = small_backbone("utae_t5")
number = st.floats(allow_nan=False, allow_infinity=False)
years = st.lists(st.integers(2000, 2100), max_size=4).map(tuple)


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(
    fold=st.none() | st.integers(0, 11),
    train_years=years,
    test_years=years,
    statistics=st.lists(st.tuples(number, number), max_size=5),
    val_ap=st.none() | st.floats(0, 1),
    dataset_fingerprint=st.text(),
    training_key=st.none() | st.text(),
)
def test_every_header_comes_back_exactly(tmp_path_factory, statistics, **values):
    mean, std = tuple(m for m, _ in statistics), tuple(s for _, s in statistics)
    info = dataclasses.replace(INFO, mean=mean, std=std, **values)
    path = tmp_path_factory.mktemp("header") / "member.safetensors"
    save_checkpoint(path, SMALL, info)
    assert read_info(path) == info


def test_channels_last_weights_are_saved_as_they_are(tmp_path):
    backbone = small_backbone("utae_t5")
    expected = {key: value.clone() for key, value in backbone.state_dict().items()}
    save_checkpoint(tmp_path / "a.safetensors", backbone.to(memory_format=torch.channels_last), INFO)
    loaded = load_checkpoint(tmp_path / "a.safetensors")[0].state_dict()
    assert all(torch.equal(loaded[key], value) for key, value in expected.items())


def test_the_same_weights_give_the_same_hash(tmp_path, checkpoint):
    save_checkpoint(tmp_path / "again.safetensors", small_backbone("utae_t5"), INFO)
    save_checkpoint(tmp_path / "other.safetensors", small_backbone("utae_t5", phase=1), INFO)
    assert content_hash(checkpoint) == hashlib.sha256(checkpoint.read_bytes()).hexdigest()
    assert content_hash(tmp_path / "again.safetensors") == content_hash(checkpoint)
    assert content_hash(tmp_path / "other.safetensors") != content_hash(checkpoint)


def test_what_does_not_fit_together_is_not_saved(tmp_path):
    path = tmp_path / "member.safetensors"
    backbone = small_backbone("utae_t5")
    with pytest.raises(ValueError, match="does not describe"):
        save_checkpoint(path, backbone, dataclasses.replace(INFO, width=0.25))
    with pytest.raises(ValueError, match="folded away"):
        save_checkpoint(path, fast(backbone), INFO)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_earlier_file(checkpoint, monkeypatch):
    before = checkpoint.read_bytes()

    def fail(weights, path, metadata):
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr("fcer.models.headers.save_file", fail)
    with pytest.raises(OSError, match="disk full"):
        save_checkpoint(checkpoint, small_backbone("utae_t5", phase=1), INFO)
    assert checkpoint.read_bytes() == before
    assert [path.name for path in checkpoint.parent.iterdir()] == [checkpoint.name]


def test_reading_the_header_does_not_touch_the_weights(checkpoint, monkeypatch):
    """Weights overwritten in place: only loading them notices."""
    content = bytearray(checkpoint.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    content[start:] = b"\xff" * (len(content) - start)
    checkpoint.write_bytes(content)
    assert read_info(checkpoint) == INFO
    with pytest.raises(CheckpointError, match=r"fold2\.safetensors: its bytes have changed since it was written"):
        load_checkpoint(checkpoint)


@pytest.mark.parametrize("read", [read_info, load_checkpoint])
@pytest.mark.parametrize("kept", [0, 5, 200, -1])
def test_a_file_cut_short(checkpoint, kept, read):
    checkpoint.write_bytes(checkpoint.read_bytes()[:kept])
    with pytest.raises(CheckpointError, match=r"fold2\.safetensors: not a safetensors file, or cut short"):
        read(checkpoint)


@pytest.mark.parametrize("read", [read_info, load_checkpoint, content_hash])
def test_no_file_and_a_folder(tmp_path, read):
    with pytest.raises(CheckpointError, match="there is no such file; check the path"):
        read(tmp_path / "none.safetensors")
    with pytest.raises(CheckpointError, match="check the path"):
        read(tmp_path)


@pytest.mark.parametrize("header", [None, {"format": "pt"}])
def test_a_file_without_header(checkpoint, header):
    with pytest.raises(CheckpointError, match=r"other\.safetensors: its header does not say what the weights are"):
        read_info(with_header(checkpoint, header))


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"fcer": "{"}, "Expecting property name"),
        ({"fcer": "[]"}, "it is not an object"),
        ({"fcer": "{}"}, "arch, channels, .* missing or unknown"),
        (changed(colour="red"), "colour missing or unknown"),
        (changed(arch="resnet"), "arch 'resnet' is not one of utae_t5, unet_t5, unet_t1"),
        (changed(arch=5), "arch is 5, but should be a name"),
        (changed(channels=3.5), "channels is 3.5, but should be a whole number"),
        (changed(fold=True), "fold is True, but should be a whole number or none"),
        (changed(width="wide"), "width is 'wide', but should be a number"),
        (changed(train_years=2018), "train_years is 2018, but should be a list, each item a whole number"),
        (changed(test_years=["2018"]), r"test_years is \['2018'\], but should be a list, each item a whole number"),
        (changed(features=[0, 1]), "2 features for 3 channels"),
        (changed(mean=[0]), "1 means for 3 standard deviations"),
        (changed(std=[1, 1, math.inf]), r"std is \[1, 1, inf\], but should be a list, each item a number"),
        (changed(training_key=7), "training_key is 7, but should be a name or none"),
        (changed(val_ap=math.nan), "val_ap is nan, but should be a number or none"),
    ],
)
def test_headers_that_cannot_be_used(checkpoint, header, reason):
    with pytest.raises(CheckpointError, match=rf"other\.safetensors: its header cannot be used \(.*{reason}") as caught:
        read_info(with_header(checkpoint, header))
    assert "\n" not in str(caught.value)


def test_a_header_from_before_there_was_a_training_key(checkpoint):
    header = {name: value for name, value in dataclasses.asdict(INFO).items() if name != "training_key"}
    read = read_info(with_header(checkpoint, {"fcer": json.dumps(header)}))
    assert read == dataclasses.replace(INFO, training_key=None)


def test_a_header_that_belies_the_weights(checkpoint):
    with pytest.raises(CheckpointError, match=r"header says width 0.25, its weights 0.125"):
        load_checkpoint(with_header(checkpoint, changed(width=0.25)))
    with pytest.raises(CheckpointError, match=r"weights of utae_t5 on 3 .*, not of unet_t5"):
        load_checkpoint(with_header(checkpoint, changed(arch="unet_t5")))


def test_another_backbone_than_asked_for(checkpoint):
    assert load_checkpoint(checkpoint, "utae_t5", 3)[1] == INFO
    with pytest.raises(CheckpointError, match="it holds utae_t5 on 3 channels a day, not unet_t1 on 3"):
        load_checkpoint(checkpoint, "unet_t1")
    with pytest.raises(CheckpointError, match="it holds utae_t5 on 3 channels a day, not utae_t5 on 7"):
        load_checkpoint(checkpoint, channels=7)


def test_the_file_is_plain_safetensors_with_the_released_keys(checkpoint):
    with safe_open(checkpoint, framework="pt") as file:
        keys = set(file.keys())
    with torch.device("meta"):
        assert keys == build("utae_t5").state_dict().keys()
