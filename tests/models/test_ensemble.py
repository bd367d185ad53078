"""The ensemble's maps against the same thing computed sample by sample with plain torch."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from backbone_cases import golden_shapes
from fcer.data.catalog import open_catalog
from fcer.data.channels import feature_indices
from fcer.data.folds import fair_folds
from fcer.data.normalization import released
from fcer.data.samples import Samples
from fcer.errors import CheckpointError
from fcer.maps.predicted_maps import open_maps
from fcer.models.ensemble import average_precisions, choose_backbone, selection_aps
from fcer.models.members import Member, load_members
from fcer.models.persistence_baseline import persistence_ap
from fcer.models.released import load_released
from golden_formulas import state_dict

VEGETATION = feature_indices("vegetation")
CROP = 64
"""A quarter of the pixels that the paper's crop has, where every one of them passes through networks of full width."""
FILE_APS = {0: 0.512, 2: 0.345, 6: 0.590}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files in the released layout, for the folds that test on 2021."""
    root = tmp_path_factory.mktemp("released")
    folder = root / "Res18UTAE_T5" / "Veg"
    folder.mkdir(parents=True)
    for phase, (fold, ap) in enumerate(FILE_APS.items()):
        weights = {
            key: torch.from_numpy(value) for key, value in state_dict(golden_shapes("utae_t5"), 1000 * phase).items()
        }
        weights["loss.pos_weight"] = torch.ones(1)
        torch.save(weights, folder / f"fold{fold}_testAP{ap:.3f}.pth")
    return root


@pytest.fixture(scope="module")
def members(checkpoints: Path) -> list[Member]:
    return load_members(checkpoints, "utae_t5", fair_folds(2021), VEGETATION)


@pytest.fixture(scope="module")
def samples(golden_hdf5: Path) -> Samples:
    return Samples(open_catalog(golden_hdf5, [2021]).fires, days=5, features=VEGETATION, leading=5)


def plain_probabilities(checkpoints: Path, golden_hdf5: Path, stats: dict[int, tuple[int, ...]]) -> np.ndarray:
    members = []
    for fold, ap in FILE_APS.items():
        backbone = load_released(checkpoints / "Res18UTAE_T5" / "Veg" / f"fold{fold}_testAP{ap:.3f}.pth", "utae_t5", 7)
        standardised = Samples(
            open_catalog(golden_hdf5, [2021]).fires,
            days=5,
            features=VEGETATION,
            normalization=released(stats[fold]),
            leading=5,
            crop=CROP,
        )
        with torch.no_grad():
            maps = [torch.sigmoid(backbone.eval()(torch.from_numpy(x)[None]))[0, 0] for x, _ in standardised]
        members.append(torch.stack(maps).numpy())
    return np.stack(members)


@pytest.mark.parametrize("normalization", ["member", "backbone"])
def test_maps_equal_an_independent_computation(
    normalization: str, checkpoints: Path, golden_hdf5: Path, tmp_path: Path, fcer_main
):
    own = {fold.number: fold.train for fold in fair_folds(2021)}
    stats = own if normalization == "member" else dict.fromkeys(own, own[0])  # fold 0 has the median AP, 0.512
    code, out, _ = fcer_main(
        *("evaluate", "--data", golden_hdf5, "--checkpoints", checkpoints, "--year", "2021", "--arch", "utae_t5"),
        *(
            "--normalization",
            normalization,
            "--select-by",
            "file_ap",
            "--out",
            tmp_path / "out",
            "--bootstrap",
            "0",
            "--methods",
            "ensemble",
            "--crop",
            str(CROP),
        ),
    )
    assert code == 0
    assert "2021: 3 members, backbone fold0_testAP0.512.pth (median file_ap)\n" in out
    members = plain_probabilities(checkpoints, golden_hdf5, stats)
    with open_maps(tmp_path / "out" / "predictions_2021.npz") as maps:
        assert maps.methods == ("ensemble",)
        np.testing.assert_allclose(maps.prob("ensemble", slice(None)), members.mean(0), atol=1e-4)
        disagreement = members.std(0, ddof=1) * np.sqrt(3)
        np.testing.assert_allclose(maps.unc("ensemble", slice(None)), disagreement, atol=2e-4)
        assert maps.fire_id is not None and list(maps.fire_id) == ["fire_f"] * 3 + ["fire_g"]
        assert maps.date is not None and maps.date[0] == "2021-07-06"
    assert (tmp_path / "out" / "sweep.csv").exists()


def test_members_come_with_their_own_statistics(members: list[Member]):
    for member in members:
        assert member.normalization == released(member.fold.train)
        assert member.file_ap == FILE_APS[member.fold.number]
        assert member.val_ap is None and len(member.digest) == 64


def test_validation_ap_is_computed_where_a_checkpoint_does_not_tell(members: list[Member], golden_hdf5: Path):
    members = members[:2]

    def validation(member):
        years = member.fold.validation
        return Samples(open_catalog(golden_hdf5, years).fires, days=5, features=VEGETATION, leading=5, crop=CROP)

    aps = selection_aps(members, "val_ap", validation)
    assert aps == [average_precisions([member], validation(member))[0] for member in members]
    assert all(0 < ap < 1 for ap in aps)
    members = [replace(member, val_ap=ap) for member, ap in zip(members, aps, strict=True)]
    lifts = selection_aps(members, "val_lift", validation)
    assert lifts == [ap / persistence_ap(validation(member)) for ap, member in zip(aps, members, strict=True)]


def test_lift_compares_members_and_not_their_validation_years(members: list[Member]):
    """An easy year, on which fires stand still, makes any member look good."""
    members = [replace(member, val_ap=ap) for member, ap in zip(members, (0.5, 0.4, 0.3), strict=True)]
    easy = dict(zip(members, (0.5, 0.2, 0.1), strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fcer.models.ensemble.persistence_ap", lambda member: easy[member])
        assert selection_aps(members, "val_lift", lambda member: member) == pytest.approx([1, 2, 3])
    assert selection_aps(members, "val_ap", lambda member: member) == [0.5, 0.4, 0.3]


def test_a_released_file_may_tell_its_weight_of_fire(members: list[Member]):
    for member in members:
        assert member.pos_weight == 1 == member.original()[1].pos_weight


def test_the_median_member_is_the_backbone(members: list[Member]):
    assert choose_backbone(members, [0.3, 0.1, 0.2]) is members[2]
    assert choose_backbone(members[:2], [0.3, 0.1]) is members[1], "the lower of two middle ones"
    assert choose_backbone([*members, *members[:1]], [0.3, 0.1, 0.2, 0.4]) is members[2]


def test_every_sample_is_read_once(members: list[Member], samples: Samples, monkeypatch: pytest.MonkeyPatch):
    read, raw = [], Samples.raw
    monkeypatch.setattr(Samples, "raw", lambda self, k: (read.append(k), raw(self, k))[1])
    assert len(average_precisions(members[:2], samples)) == 3, "of each member, and of their mean"
    assert read == [0, 1, 2, 3]


def test_what_cannot_be_an_ensemble_is_said(checkpoints: Path, tmp_path: Path, fcer_main):
    with pytest.raises(CheckpointError, match="fold"):
        load_members(checkpoints, "utae_t5", fair_folds(2018), VEGETATION)
    code, _, err = fcer_main("evaluate", "--data", tmp_path, "--checkpoints", tmp_path / "nowhere", "--year", "2021")
    assert code == 2 and err.count("\n") == 1 and "nowhere" in err
