import argparse
import os
import shutil
from pathlib import Path

import pytest
import torch

from backbone_cases import days_of_fire, golden_weights, small_backbone
from fcer.data.folds import fair_folds
from fcer.errors import CheckpointError, ConfigError
from fcer.models.backbones import ARCHITECTURES, BackboneSpec
from fcer.models.released import ReleasedFold, find_released, load_released

ARCHS = list(ARCHITECTURES)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(content, path)
    return path


def touch_folds(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("arch", ARCHS)
def test_released_weights_load_strictly(tmp_path, arch, wrapped):
    weights = {"loss.pos_weight": torch.ones(1), **golden_weights(arch)}
    path = write(tmp_path / "fold0_testAP0.5.pth", {"epoch": 3, "state_dict": weights} if wrapped else weights)
    backbone = load_released(path)
    assert backbone.spec == BackboneSpec(arch, 7, 1.0)
    assert not backbone.training
    loaded = backbone.state_dict()
    assert all(torch.equal(loaded[key], value) for key, value in golden_weights(arch).items())


@pytest.mark.parametrize("arch", ARCHS)
def test_narrow_weights_tell_their_spec(tmp_path, arch):
    backbone = small_backbone(arch, channels=3, width=0.25)
    loaded = load_released(write(tmp_path / "narrow.pth", backbone.state_dict()), arch)
    assert loaded.spec == backbone.spec
    x = days_of_fire(backbone)
    with torch.inference_mode():
        assert torch.equal(loaded(x), backbone(x))


def test_loading_leaves_the_random_state_alone(tmp_path):
    path = write(tmp_path / "narrow.pth", small_backbone("utae_t5").state_dict())
    before = torch.get_rng_state()
    load_released(path)
    assert torch.equal(torch.get_rng_state(), before)


def test_half_precision_weights_are_widened(tmp_path):
    backbone = small_backbone("utae_t5").half()
    loaded = load_released(write(tmp_path / "half.pth", backbone.state_dict()))
    assert {weight.dtype for weight in loaded.parameters()} == {torch.float32}


class Payload:
    """What a hostile file would hold: loading it makes a folder."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_a_file_with_code_is_refused_and_not_run(tmp_path):
    proof = tmp_path / "proof"
    path = write(tmp_path / "bad.pth", {"state_dict": Payload(str(proof))})
    with pytest.raises(CheckpointError, match=r"bad\.pth: refused, since it holds code or objects beside tensors"):
        load_released(path)
    assert not proof.exists()


def test_objects_beside_the_weights_are_refused(tmp_path):
    content = {"state_dict": golden_weights("unet_t1"), "hyper_parameters": argparse.Namespace(lr=1)}
    with pytest.raises(CheckpointError, match="save its state_dict alone"):
        load_released(write(tmp_path / "lightning.pth", content))


@pytest.mark.parametrize("content", [b"", b"hello world" * 99, b"<html>not found</html>"])
def test_files_that_are_no_torch_files(tmp_path, content):
    path = tmp_path / "page.pth"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"page\.pth: not a readable torch file, or cut short; fetch it again"):
        load_released(path)


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
def test_a_file_cut_short(tmp_path, kept, legacy):
    path = tmp_path / "short.pth"
    torch.save(small_backbone("unet_t1").state_dict(), path, _use_new_zipfile_serialization=not legacy)
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.raises(CheckpointError, match=r"short\.pth: not a readable torch file, or cut short"):
        load_released(path)


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(CheckpointError, match="there is no such file; check the path"):
        load_released(tmp_path / "none.pth")
    with pytest.raises(CheckpointError, match="Is a directory"):
        load_released(tmp_path)


@pytest.mark.parametrize("content", [[1, 2], {"a": 1}, {1: torch.ones(1)}, torch.ones(3)])
def test_content_that_is_no_state_dict(tmp_path, content):
    with pytest.raises(CheckpointError, match="it is no state dict"):
        load_released(write(tmp_path / "other.pth", content))


def test_weights_of_something_else(tmp_path):
    path = write(tmp_path / "linear.pth", torch.nn.Linear(2, 2).state_dict())
    with pytest.raises(CheckpointError, match=r"none of its 2 entries is the encoder.* of utae_t5 or unet_t5"):
        load_released(path)


@pytest.mark.parametrize(
    ("held", "asked", "sentence"),
    [
        ("utae_t5", "unet_t5", r"weights of utae_t5 on 7 channels a day.*not of unet_t5.*lie in Res18Unet_T5"),
        ("unet_t5", "utae_t5", r"weights of unet_t5 on 7 channels a day.*not of utae_t5.*lie in Res18UTAE_T5"),
        ("unet_t1", "unet_t5", r"weights of unet_t1 on 7 channels a day.*not of unet_t5"),
        ("unet_t5", "unet_t1", r"weights of unet_t5 on 7 .* or unet_t1 on 35.*not of unet_t1 on 7 channels a day"),
    ],
)
def test_weights_of_another_architecture_are_named(tmp_path, held, asked, sentence):
    path = write(tmp_path / "other.pth", small_backbone(held, channels=7).state_dict())
    with pytest.raises(CheckpointError, match=sentence):
        load_released(path, asked, channels=7)


def test_stacked_days_are_told_apart_by_what_is_asked_for(tmp_path):
    path = write(tmp_path / "stacked.pth", small_backbone("unet_t5", channels=4).state_dict())
    assert load_released(path, "unet_t5").spec.channels == 4
    assert load_released(path, "unet_t1").spec.channels == 20
    assert load_released(path, channels=20).spec.arch == "unet_t1"
    with pytest.raises(CheckpointError, match=r"fit unet_t5 on 4 .* or unet_t1 on 20 .* alike; say which with arch"):
        load_released(path)


def test_missing_unexpected_and_misshapen_weights_are_named(tmp_path):
    weights = dict(small_backbone("utae_t5").state_dict())
    del weights["ltae.inconv.bias"]
    weights["ltae.extra"] = torch.ones(1)
    weights["model.segmentation_head.0.bias"] = torch.ones(2)
    with pytest.raises(CheckpointError) as caught:
        load_released(write(tmp_path / "odd.pth", weights))
    sentence = str(caught.value)
    assert "odd.pth: its weights look like those of utae_t5 on 3 channels a day at width 0.125" in sentence
    assert "ltae.inconv.bias is missing" in sentence
    assert "ltae.extra is unexpected" in sentence
    assert "model.segmentation_head.0.bias is of another shape" in sentence
    assert "\n" not in sentence


def test_many_missing_weights_are_counted(tmp_path):
    weights = {key: value for key, value in small_backbone("unet_t1").state_dict().items() if "decoder" not in key}
    with pytest.raises(CheckpointError, match=r"decoder.blocks.0.conv1.0.weight, .* and 57 more are missing"):
        load_released(write(tmp_path / "encoder.pth", weights))


def test_weights_that_are_not_finite(tmp_path):
    weights = small_backbone("unet_t1").state_dict()
    weights["model.segmentation_head.0.bias"][0] = float("nan")
    with pytest.raises(CheckpointError, match=r"segmentation_head.0.bias is not finite; the file is damaged"):
        load_released(write(tmp_path / "nan.pth", weights))


@pytest.mark.parametrize("root", ["", "Res18UTAE_T5", "Res18UTAE_T5/Veg"])
def test_the_released_layout_from_any_level(tmp_path, root):
    folder = tmp_path / "Res18UTAE_T5" / "Veg"
    touch_folds(folder, *(f"fold{n}_testAP0.4{n:02d}.pth" for n in range(12)), "README.md", ".fold3_testAP0.9.pth")
    touch_folds(tmp_path / "Res18Unet_T1" / "Veg", "fold0_testAP0.1.pth")
    found = find_released(tmp_path / root, "utae_t5")
    assert list(found) == list(range(12))
    assert found[11] == ReleasedFold(11, folder / "fold11_testAP0.411.pth", 0.411)


def test_only_the_folds_that_are_needed(tmp_path):
    touch_folds(tmp_path, "fold0_testAP0.5.pth", "fold2_testAP0.6.pth", "fold6_testAP0.55.pth", "fold7_testAP0.1.pth")
    needed = [fold.number for fold in fair_folds(2021)]
    found = find_released(tmp_path, "unet_t5", needed)
    assert {number: fold.test_ap for number, fold in found.items()} == {0: 0.5, 2: 0.6, 6: 0.55}
    with pytest.raises(CheckpointError, match=r"no checkpoint of fold 3, 5, only of fold 0, 2, 6, 7; add foldN"):
        find_released(tmp_path, "unet_t5", [0, 3, 5])


def test_one_file_a_fold_is_one_member_a_fold(tmp_path):
    touch_folds(tmp_path, "fold0_testAP0.5.pth", "fold2_testAP0.6.pth")
    sentence = "one file a fold, 2 for this test year, fewer than --members 3; give --members 2, or leave --checkpoints"
    with pytest.raises(CheckpointError, match=sentence):
        find_released(tmp_path, "unet_t5", [0, 2, 0])
    with pytest.raises(CheckpointError, match="fewer than --members 2; choose --split wsts, or leave --checkpoints"):
        find_released(tmp_path, "unet_t5", [0, 0])


def test_another_set_of_features(tmp_path):
    touch_folds(tmp_path / "Res18UTAE_T5" / "Veg", "fold0_testAP0.5.pth")
    touch_folds(tmp_path / "Res18UTAE_T5" / "Multi", "fold1_testAP0.4.pth")
    assert list(find_released(tmp_path, "utae_t5", features="Multi")) == [1]


def test_one_fold_twice(tmp_path):
    touch_folds(tmp_path, "fold1_testAP0.5.pth", "fold1_testAP0.6.pth")
    with pytest.raises(CheckpointError, match=r"fold 1 is there twice, as fold1_testAP0.5.pth and fold1_testAP0.6.pth"):
        find_released(tmp_path, "utae_t5")


@pytest.mark.parametrize(
    "name", ["last.pth", "fold1.pth", "fold12_testAP0.5.pth", "fold1_testAP1.5.pth", "fold-1_testAP0.5.pth"]
)
def test_names_that_are_not_released_ones(tmp_path, name):
    touch_folds(tmp_path, "fold0_testAP0.5.pth", name)
    with pytest.raises(CheckpointError, match=rf"{name}: released checkpoints are called foldN_testAP0.xxx.pth"):
        find_released(tmp_path, "utae_t5")


def test_no_checkpoints_of_that_architecture(tmp_path):
    touch_folds(tmp_path / "Res18Unet_T5" / "Veg", "fold0_testAP0.5.pth")
    with pytest.raises(CheckpointError, match=r"no released checkpoints of utae_t5, though there is Res18Unet_T5"):
        find_released(tmp_path, "utae_t5")
    shutil.rmtree(tmp_path / "Res18Unet_T5")
    with pytest.raises(CheckpointError, match=r"put foldN_testAP0.xxx.pth files into .*Res18UTAE_T5"):
        find_released(tmp_path, "utae_t5")
    with pytest.raises(CheckpointError, match="no released checkpoints"):
        find_released(tmp_path / "nowhere", "utae_t5")
    with pytest.raises(ConfigError, match="no backbone 'res18'"):
        find_released(Path(), "res18")
