"""The feature cache: what it holds is what the members say, it is found by content, and it survives a kill."""

import dataclasses
import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import torch
from safetensors.torch import save_file

from fcer.core.disagreement import mutual_information, normalized_std, predictive_entropy
from fcer.data.dataset import Dataset
from fcer.data.normalization import released
from fcer.data.synthetic.fires import Recipe, synthesize
from fcer.errors import DataError, FcerError, FcerWarning
from fcer.models import load_checkpoint
from fcer.models.members import Member
from fcer.models.student import HeadSpec, fire_around, probability_around
from fcer.training import feature_cache
from fcer.training.feature_cache import FeatureCache, cache_features, cache_key, cached_bytes, open_cache
from fcer.training.feature_shards import CachedSplit
from fcer.training.teaching import Teaching
from teaching_cases import make_teaching, save_members
from training_cases import tiny_data


def whole(split: CachedSplit) -> dict[str, torch.Tensor]:
    return {name: torch.cat(parts) for name, parts in zip(
        ("features", "logits", "passes", "y", "today"), zip(*split.blocks(), strict=True), strict=True
    )}  # fmt: skip


@torch.no_grad()
def plainly(teaching: Teaching, split: str, view: int = 0) -> dict[str, torch.Tensor]:
    """The same from the checkpoints as they lie on disk, sample by sample, one member after the other."""
    expected: dict[str, list[torch.Tensor]] = {"features": [], "logits": [], "passes": [], "y": [], "today": []}
    backbones = [load_checkpoint(member.path)[0] for member in teaching.teachers]
    own = list(teaching.teachers).index(teaching.backbone)
    for index in range(len(getattr(teaching, split)())):
        passes = []
        for member, backbone in zip(teaching.teachers, backbones, strict=True):
            samples = getattr(teaching, split)(teaching.shared or member.normalization)
            samples.set_epoch(view)
            x = torch.from_numpy(samples[index].x)[None]
            passes.append(backbone(x)[0, 0])
        samples = getattr(teaching, split)(teaching.shared or teaching.backbone.normalization)
        samples.set_epoch(view)
        x, y = samples[index]
        expected["features"].append(backbones[own].features(torch.from_numpy(x)[None])[0].flatten(1))
        expected["logits"].append(passes[own].flatten())
        expected["passes"].append(torch.stack(passes).sigmoid().flatten(1))
        expected["y"].append(torch.from_numpy(y).flatten())
        expected["today"].append(torch.from_numpy(x)[-1, -1].flatten().to(torch.uint8))
    return {name: torch.stack(parts) for name, parts in expected.items()}


@pytest.mark.parametrize("split", ["training", "validation"])
def test_content_is_what_the_members_say(split: str, teaching: Teaching, cached: FeatureCache):
    found, expected = whole(getattr(cached, split)), plainly(teaching, split)
    assert found["features"].dtype == found["passes"].dtype == torch.float16
    torch.testing.assert_close(found["features"].float(), expected["features"], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(found["logits"], expected["logits"], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found["passes"].float(), expected["passes"], rtol=0, atol=5e-4)
    assert torch.equal(found["y"], expected["y"])
    assert torch.equal(found["today"], expected["today"])


def test_views_follow_one_another(tiny: Dataset, members: list[Member], tmp_path: Path):
    teaching = make_teaching(tiny, members, views=2)
    content = whole(cache_features(teaching, tmp_path).training)
    samples = len(teaching.training())
    assert len(content["y"]) == 2 * samples
    for view in (0, 1):
        part = {name: value[view * samples : (view + 1) * samples] for name, value in content.items()}
        expected = plainly(teaching, "training", view)
        assert torch.equal(part["y"], expected["y"])
        torch.testing.assert_close(part["logits"], expected["logits"], rtol=1e-4, atol=1e-5)
    assert not torch.equal(content["logits"][:samples], content["logits"][samples:])


def test_statistics_of_the_backbone_for_all(tiny: Dataset, members: list[Member], tmp_path: Path):
    teaching = make_teaching(tiny, members, shared=members[1].normalization)
    found, expected = whole(cache_features(teaching, tmp_path).validation), plainly(teaching, "validation")
    torch.testing.assert_close(found["passes"].float(), expected["passes"], rtol=0, atol=5e-4)


def test_every_sample_passes_once_through_each_member(teaching: Teaching, tmp_path: Path):
    passed: Counter[int] = Counter()
    hooks = [
        member.backbone.decoder.register_forward_hook(
            lambda _m, _i, out, k=k: passed.update({k: len(out)})  # type: ignore[misc]
        )
        for k, member in enumerate(teaching.teachers)
    ]
    cache_features(teaching, tmp_path)
    samples = len(teaching.training()) + len(teaching.validation())
    assert passed == {0: samples, 1: samples, 2: samples}
    again = cache_features(teaching, tmp_path)
    assert again.found and passed == {0: samples, 1: samples, 2: samples}, "the second time nothing is computed"
    for hook in hooks:
        hook.remove()


def test_other_inputs_have_other_keys(teaching: Teaching, members: list[Member], tmp_path: Path):
    root = tmp_path / "fires"
    synthesize(Recipe((2018, 2019, 2020, 2021), 2, (34, 40), (8, 9), seed=6), root, workers=1)
    other_data = tiny_data(root)
    retrained = save_members(tmp_path / "retrained", other_data)
    changed = {
        "seed": dataclasses.replace(teaching, seed=1),
        "views": dataclasses.replace(teaching, views=2),
        "crop": dataclasses.replace(teaching, crop=64),
        "backbone": dataclasses.replace(teaching, backbone=members[2]),
        "fewer teachers": dataclasses.replace(teaching, teachers=members[:2]),
        "shared": dataclasses.replace(teaching, shared=members[1].normalization),
        "shared, released": dataclasses.replace(teaching, shared=released((2018, 2019))),
        "data": dataclasses.replace(teaching, dataset=other_data),
        "checkpoints": dataclasses.replace(teaching, teachers=retrained, backbone=retrained[1]),
        "features": dataclasses.replace(teaching, backbone=dataclasses.replace(members[1], features=(38, 3, 39))),
    }
    keys = {"as it is": cache_key(teaching), **{name: cache_key(other) for name, other in changed.items()}}
    assert len(set(keys.values())) == len(keys)
    assert cache_key(dataclasses.replace(teaching)) == keys["as it is"]


def test_what_a_kill_left_is_gone_on_from(
    teaching: Teaching, cached: FeatureCache, tmp_path: Path, monkeypatch, capsys
):
    monkeypatch.setattr(feature_cache, "SHARD", 8)
    undisturbed = cache_features(teaching, tmp_path / "undisturbed")
    done, pass_through = [], feature_cache.pass_through

    def killed(*arguments, **how):
        done.append(arguments[2])
        if len(done) == 6:
            raise KeyboardInterrupt
        return pass_through(*arguments, **how)

    monkeypatch.setattr(feature_cache, "pass_through", killed)
    with pytest.raises(KeyboardInterrupt):
        cache_features(teaching, tmp_path / "killed")
    left = sorted(path.name for path in (tmp_path / "killed").glob("*/*.safetensors"))
    assert left == ["training-00000.safetensors", "training-00001.safetensors"], "two shards of two batches each"
    capsys.readouterr()
    finished = cache_features(teaching, tmp_path / "killed")
    assert "of it there already" in capsys.readouterr().out
    assert not finished.found
    for split in ("training", "validation"):
        ours, theirs = whole(getattr(finished, split)), whole(getattr(undisturbed, split))
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    whole_cache = whole(cached.training)
    assert torch.equal(whole(finished.training)["y"], whole_cache["y"]), "shards of any size hold the same"


def test_the_size_is_known_before(teaching: Teaching, tmp_path: Path, capsys):
    cache = cache_features(teaching, tmp_path)
    files = list(cache.folder.glob("*.safetensors"))
    on_disk = sum(path.stat().st_size for path in files)
    assert 0 <= on_disk - cached_bytes(teaching) < 600 * len(files)
    assert f"feature cache: {cached_bytes(teaching) / 1e6:.2f} MB in {cache.folder}" in capsys.readouterr().out


def test_a_full_disk_is_refused_before_anything_is_computed(teaching: Teaching, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(
        FcerError, match=r"feature cache: .* MB more are needed in .*, where 0.00 MB are free; make room"
    ):
        cache_features(teaching, tmp_path)
    assert not list(tmp_path.glob("*/*"))


def test_a_cache_by_its_folder(cached: FeatureCache, tmp_path: Path):
    opened = open_cache(cached.folder)
    assert (opened.key, len(opened.training)) == (cached.key, len(cached.training))
    copy = tmp_path / "copy"
    shutil.copytree(cached.folder, copy)
    (copy / "validation-00000.safetensors").unlink()
    with pytest.raises(FcerError, match="not a complete feature cache; run fcer distill"):
        open_cache(copy)


def test_a_damaged_shard_is_named(cached: FeatureCache, tmp_path: Path):
    path = tmp_path / "training-00000.safetensors"
    path.write_bytes((cached.folder / path.name).read_bytes()[:-100])
    with pytest.raises(
        FcerError, match=r"training-00000.safetensors: cannot be read .*; remove it, and it is computed"
    ):
        CachedSplit([path])


def test_a_flipped_bit_is_found_and_its_shard_made_again(teaching: Teaching, cached: FeatureCache, tmp_path: Path):
    copy = tmp_path / cached.folder.name
    shutil.copytree(cached.folder, copy)
    path = copy / "training-00000.safetensors"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(content)
    with pytest.warns(FcerWarning, match=r"training-00000\.safetensors: its bytes have changed .*; made again"):
        assert not cache_features(teaching, tmp_path).found
    assert path.read_bytes() == (cached.folder / path.name).read_bytes()


def test_targets(cached: FeatureCache):
    passes = whole(cached.validation)["passes"].double().numpy().swapaxes(0, 1)
    for kind, measure in {
        "std": normalized_std,
        "mutual_information": mutual_information,
        "entropy": predictive_entropy,
    }.items():
        np.testing.assert_allclose(cached.validation.targets(kind).numpy(), measure(passes), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("logit", "context"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("fire", "decoder"), [(False, True), (True, False)])
def test_batches_hold_what_a_head_reads_in_single_precision(
    cached: FeatureCache, wide: bool, logit: bool, context: bool, fire: bool, decoder: bool
):
    content = whole(cached.training)
    split = cached.training.widened() if wide else cached.training
    spec = HeadSpec(split.features, (), logit, context, fire, decoder)
    got = split.gather([len(split) - 1, 0], spec, torch.empty(3, len(spec.rows), split.pixels))
    assert len(got) == 2
    for rows, index in zip(got, (len(split) - 1, 0), strict=True):
        logits = content["logits"][index].view(1, split.side, split.side)
        today = content["today"][index].view(1, split.side, split.side)
        parts = [content["features"][index].float()] if decoder else []
        parts += [logits.flatten()[None]] if logit else []
        parts += [probability_around(logits)[0].flatten(1).half().float()] if context else []
        parts += [fire_around(today)[0].flatten(1).half().float()] if fire else []
        assert torch.equal(rows, torch.cat(parts))


def test_shards_are_mapped_and_not_read(tmp_path: Path):
    path = tmp_path / "training-00000.safetensors"
    arrays = {
        "features": torch.ones(64, 16, 128, 128).half(),
        "logits": torch.ones(64, 128, 128),
        "passes": torch.ones(64, 3, 128, 128).half(),
        "y": torch.ones(64, 128, 128, dtype=torch.uint8),
        "today": torch.ones(64, 128, 128, dtype=torch.uint8),
    }
    save_file(arrays, path)
    del arrays
    before = psutil.Process().memory_info().rss
    split = CachedSplit([path])
    split.gather([5], HeadSpec(16), torch.empty(1, 16, 128 * 128))
    assert psutil.Process().memory_info().rss - before < path.stat().st_size / 3


def test_features_beyond_half_precision_are_refused(tiny: Dataset, members: list[Member], tmp_path: Path):
    member = members[1]
    hook = member.backbone.decoder.register_forward_hook(lambda _m, _i, out: out * 1e6)
    with pytest.raises(FcerError, match="more than half precision can hold; the backbone has diverged"):
        cache_features(make_teaching(tiny, members), tmp_path)
    hook.remove()


def test_fires_that_are_too_short(short: Dataset, tmp_path: Path):
    members = save_members(tmp_path / "members", short, arch="utae_t5")
    with pytest.raises(DataError, match=r"no fire of 2018, 2020 has 6 consecutive days"):
        cache_features(make_teaching(short, members), tmp_path)
