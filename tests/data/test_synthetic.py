import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fcer.data.catalog import open_catalog
from fcer.data.channels import CHANNELS
from fcer.data.fire import Fire
from fcer.data.geotiff import open_geotiff
from fcer.data.hdf5 import open_hdf5
from fcer.data.samples import central_crop
from fcer.data.synthetic.fires import COMPOSITE_LAG, synthesize
from fcer.errors import ConfigError
from small_recipe import SMALL
from spread_statistics import REAL, side_by_side, spread_statistics


def contents(root: Path) -> dict[str, bytes]:
    return {fire.label: fire.read(slice(None), range(23)).tobytes() for fire in open_catalog(root).fires}


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> list[Fire]:
    root = tmp_path_factory.mktemp("many")
    years = (2018, 2019, 2020, 2021)
    recipe = replace(SMALL, years=years, fires_per_year=6, image_size=(128, 140), fire_days=(8, 12), seed=0)
    synthesize(recipe, root, workers=2)
    return list(open_catalog(root).fires)


def test_the_layout_is_the_dataset_s_own(small_fires: Path):
    catalog = open_catalog(small_fires)
    assert not catalog.problems
    assert [fire.label for fire in catalog.fires] == [
        "2018/fire_synthetic_20180000.hdf5",
        "2018/fire_synthetic_20180001.hdf5",
        "2019/fire_synthetic_20190000.hdf5",
        "2019/fire_synthetic_20190001.hdf5",
    ]
    for fire in catalog.fires:
        assert min(fire.height, fire.width) >= 40 and max(fire.height, fire.width) <= 56
        assert 7 <= fire.days <= 9
        assert fire.dates is not None and len(fire.dates) == fire.days and not fire.gaps()
        assert fire.lnglat is not None and fire.place is not None


def test_both_forms_hold_the_same_fire(small_fires: Path):
    for path in sorted((small_fires / "2018").glob("*.hdf5")):
        plain, tif = open_hdf5(path), open_geotiff(path.with_suffix(""))
        np.testing.assert_array_equal(plain.read(slice(None), range(23)), tif.read(slice(None), range(23)))
        assert (plain.dates, plain.place) == (tif.dates, tif.place)
        np.testing.assert_allclose(plain.lnglat, tif.lnglat, atol=0.2)


def test_same_seed_same_fires_however_many_workers(small_fires: Path, tmp_path: Path):
    synthesize(SMALL, tmp_path / "again", workers=2)
    assert contents(tmp_path / "again") == contents(small_fires)
    synthesize(replace(SMALL, seed=4), tmp_path / "other", workers=2)
    assert not set(contents(tmp_path / "other").values()) & set(contents(small_fires).values())


def test_complete_fires_are_not_made_again_and_damaged_ones_are(small_fires: Path, tmp_path: Path):
    assert synthesize(SMALL, tmp_path, workers=1) == 4
    assert synthesize(SMALL, tmp_path, workers=1) == 0
    (tmp_path / "2018" / "fire_synthetic_20180001.hdf5").write_bytes(b"\x89HDF\r\n\x1a\nhalf of it")
    assert synthesize(SMALL, tmp_path, workers=1) == 1
    assert contents(tmp_path) == contents(small_fires)


def test_a_folder_holds_the_fires_of_one_recipe(tmp_path: Path):
    synthesize(replace(SMALL, years=(2018,), fires_per_year=1), tmp_path / "a", workers=1)
    with pytest.raises(ConfigError) as error:
        synthesize(replace(SMALL, years=(2018,), fires_per_year=1, seed=5), tmp_path / "a", workers=1)
    assert str(error.value) == (
        f"{tmp_path / 'a'}: holds synthetic fires with seed 3, not 5; choose another --out, or remove the folder"
    )
    (tmp_path / "b" / "2018").mkdir(parents=True)
    with pytest.raises(ConfigError, match="holds fires that were not made by `fcer synthesize`; choose another --out"):
        synthesize(SMALL, tmp_path / "b", workers=1)


@pytest.mark.slow
def test_fire_is_a_few_per_cent_of_the_crop_at_most_and_most_fires_last(many: list[Fire]):
    shares, lasting = [], []
    for fire in many:
        crop = (central_crop(fire.height, 128), central_crop(fire.width, 128))
        active = fire.read(slice(None), (22,), *crop)[:, 0] > 0
        shares += list(active.mean((1, 2)))
        lasting.append(active[-1].any())
    assert 0.001 < np.mean(shares) < 0.02
    assert 0.04 < max(shares) < 0.12, "the largest real ones reach 8 per cent"
    assert 0.4 < np.mean(lasting) <= 1


def test_what_is_seen_tells_of_what_comes(many: list[Fire]):
    """Spread depends on fuel and wind: without that, no model could do better than repeating today's fire."""
    lit_ndvi, spared_ndvi, along = [], [], []
    for fire in many:
        days = fire.read(slice(None), range(23))
        active = days[:, 22] > 0
        for today, tomorrow, image in zip(active, active[1:], days, strict=False):
            if not today.any():
                continue
            rows, columns = np.indices(today.shape)
            centre = np.array([rows[today].mean(), columns[today].mean()])
            near = (np.hypot(rows - centre[0], columns - centre[1]) < 10) & ~active[:].any(0) & ~today
            lit = tomorrow & ~today
            if lit.sum() < 5 or not near.any():
                continue
            lit_ndvi.append(np.nanmean(image[3][lit]))
            spared_ndvi.append(np.nanmean(image[3][near]))
            moved = np.array([rows[lit].mean(), columns[lit].mean()]) - centre
            towards = np.radians(image[7].mean() + 180)
            along.append(moved @ np.array([-np.cos(towards), np.sin(towards)]))
    assert np.mean(along) > 0.5, "fire moves downwind"
    assert np.mean(np.array(lit_ndvi) > np.array(spared_ndvi)) > 0.7, "fire prefers dense vegetation"


def test_values_look_like_the_dataset_s(many: list[Fire]):
    days = np.concatenate([fire.read(slice(0, 4), range(23)).swapaxes(0, 1).reshape(23, -1) for fire in many], axis=1)
    named = dict(zip(CHANNELS, days, strict=True))
    for angle in ("wind direction", "aspect", "forecast wind direction"):
        assert named[angle].min() >= 0 and named[angle].max() <= 360
    assert set(np.unique(named["land cover"])) <= set(range(1, 18)) and len(np.unique(named["land cover"])) > 4
    assert set(np.unique(named["active fire"])) == {0, 10, 21}
    assert 0.005 < np.isnan(named["VIIRS M11"]).mean() < 0.3
    assert 0 < np.isnan(named["NDVI"]).mean() < 0.01
    assert 250 < named["minimum temperature"].mean() < named["maximum temperature"].mean() < 320


def test_fires_change_from_day_to_day_as_real_ones_do(many: list[Fire]):
    """Printed side by side (`pytest -rP`); bounds are as wide as a few dozen fires need."""
    found = spread_statistics(many)
    print(side_by_side(real=REAL, synthetic=found))
    for name, expected in REAL.items():
        low, high = (0.5, 1.6) if "components" in name or "ratio" in name else (expected - 0.12, expected + 0.12)
        relative = found[name] / expected if "components" in name or "ratio" in name else found[name]
        assert low <= relative <= high, f"{name}: {found[name]:.2f}, real {expected:.2f}"


def test_scars_do_not_show_on_the_day_itself_and_composites_lag(many: list[Fire]):
    """On the day that a pixel first burns its bands are those of the day before; its indices stay for eight days."""
    changes: dict[tuple[str, int], list[np.ndarray]] = {}
    for fire in many:
        days = fire.read(slice(None), range(23))
        first = np.where((days[:, 22] > 0).any(0), (days[:, 22] > 0).argmax(0), -1)
        for k in range(1, fire.days):
            lit = first == k
            for name, channel in (("I2", 1), ("NDVI", 3)):
                for later in (0, 1, COMPOSITE_LAG - 1, COMPOSITE_LAG + 1):
                    if k + later < fire.days:
                        change = days[k + later, channel][lit] - days[k - 1, channel][lit]
                        changes.setdefault((name, later), []).append(change)
    change = {key: float(np.nanmedian(np.concatenate(values))) for key, values in changes.items()}
    assert abs(change["I2", 0]) < 40 and change["I2", 1] < -400
    assert all(abs(change["NDVI", later]) < 40 for later in (0, 1, COMPOSITE_LAG - 1))
    assert change["NDVI", COMPOSITE_LAG + 1] < -1000


def test_years_differ_in_weather(many: list[Fire]):
    """Drought, which the PDSI channel shows, is a year's own; within a year, fires differ less."""
    pdsi = {
        year: [fire.read(slice(0, 1), (15,)).mean() for fire in many if fire.year == year]
        for year in (2018, 2019, 2020, 2021)
    }
    assert np.ptp([np.mean(values) for values in pdsi.values()]) > 0.5


def test_killed_in_the_middle_and_started_again_gives_the_same_fires(tmp_path: Path):
    recipe = replace(SMALL, fires_per_year=8, image_size=(90, 100))
    call = "from pathlib import Path; from fcer.data.synthetic.fires import *; "
    call += f"synthesize({recipe!r}, Path('killed'), workers=1)"
    process = subprocess.Popen([sys.executable, "-c", call], cwd=tmp_path)
    deadline = time.monotonic() + 300
    while not list(tmp_path.glob("killed/2018/fire*.hdf5")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it ended before it could be killed: make the set larger"
    made = synthesize(recipe, tmp_path / "killed", workers=1)
    assert 0 < made < 16
    synthesize(recipe, tmp_path / "undisturbed", workers=2)
    assert contents(tmp_path / "killed") == contents(tmp_path / "undisturbed")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
def test_memory_does_not_grow_with_the_number_of_days(tmp_path: Path):
    """A fire is written day by day: 30 days of 300 x 300 px are 0.25 GB, of which memory sees a few days."""
    recipe = replace(SMALL, years=(2018,), fires_per_year=1, image_size=(300, 300), fire_days=(30, 30))
    call = (
        "from pathlib import Path; from fcer.data.synthetic.fires import *; "
        f"synthesize({recipe!r}, Path('large'), workers=1); "
        "print(*[line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')])"
    )
    done = subprocess.run([sys.executable, "-c", call], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (tmp_path / "large" / "2018" / "fire_synthetic_20180000.hdf5").stat().st_size > 225 * 2**20
    assert int(done.stdout) < 300 * 1024
