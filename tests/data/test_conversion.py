import hashlib
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import rasterio

from fcer.data.catalog import open_catalog
from fcer.data.conversion import convert
from fcer.data.geotiff import open_geotiff
from fcer.data.hdf5 import open_hdf5
from golden_fires import PLACE


@pytest.fixture
def source(small_fires: Path, tmp_path: Path) -> Path:
    """The GeoTIFF folders alone."""
    for folder in small_fires.glob("20*/fire_*/"):
        shutil.copytree(folder, tmp_path / "source" / folder.parent.name / folder.name)
    return tmp_path / "source"


def digests(root: Path) -> dict[str, str]:
    return {str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(root.rglob("*.hdf5"))}


def test_values_dates_and_place_are_kept(source: Path, tmp_path: Path):
    done = convert(source, tmp_path / "out", workers=2)
    assert (done.converted, done.present, done.problems) == (4, 0, ())
    for fire in open_catalog(tmp_path / "out").fires:
        original = open_geotiff(source / str(fire.year) / fire.name)
        np.testing.assert_array_equal(fire.read(slice(None), range(23)), original.read(slice(None), range(23)))
        assert (fire.dates, fire.place) == (original.dates, original.place)
        with h5py.File(fire.path) as file:
            attributes = dict(file["data"].attrs)
        assert (attributes["year"], attributes["fire_name"]) == (fire.year, fire.name)
        assert list(attributes["img_dates"]) == [d.isoformat() for d in original.dates]
        with rasterio.open(original.tifs[0]) as image:
            assert rasterio.crs.CRS.from_string(fire.place.crs) == image.crs
            assert rasterio.Affine(*fire.place.transform) == image.transform
            assert attributes["lnglat"] == pytest.approx(image.lnglat(), abs=1e-6)


def test_detection_times_become_hours(tmp_path: Path):
    times = np.array([[np.nan, 905, 2359], [30, 100, 1200]], np.float32)
    tif = tmp_path / "2018" / "fire_a" / "2018-07-01.tif"
    tif.parent.mkdir(parents=True)
    profile = {"driver": "GTiff", "count": 23, "height": 2, "width": 3, "dtype": "float32"}
    with rasterio.open(tif, "w", crs=PLACE.crs, transform=rasterio.Affine(*PLACE.transform), **profile) as image:
        image.write(np.stack([*np.zeros((22, 2, 3), np.float32), times]))
    hours = open_geotiff(tif.parent).read(slice(None), (22,))[0, 0]
    # 00:30 is hour 0 and thus no fire, as in the dataset's own conversion
    np.testing.assert_array_equal(hours, [[0, 9, 23], [0, 1, 12]])


def test_what_is_there_is_not_converted_again_but_new_days_are(source: Path, tmp_path: Path):
    convert(source, tmp_path / "out", workers=1)
    assert convert(source, tmp_path / "out", workers=1).present == 4
    fire = sorted((source / "2018").iterdir())[0]
    days = sorted(fire.glob("*.tif"))
    days[-1].unlink()
    done = convert(source, tmp_path / "out", workers=1)
    assert (done.converted, done.present) == (1, 3)
    assert open_hdf5(tmp_path / "out" / "2018" / f"{fire.name}.hdf5").days == len(days) - 1
    shutil.copyfile(days[1], days[0])  # same names and size, other content
    assert convert(source, tmp_path / "out", workers=1).converted == 1


def test_a_broken_fire_does_not_stop_the_rest(source: Path, fcer_main):
    tif = sorted((source / "2018").glob("*/*.tif"))[1]
    tif.write_bytes(tif.read_bytes()[:1000])
    code, out, err = fcer_main("convert", "--source", source, "--out", "out")
    assert code == 0
    assert err == f"left out: {tif}: the GeoTIFF is truncated or damaged; download it again\n"
    assert out == "out: 3 fires converted, 0 already there, 1 left out\nnext: fcer inspect --data out\n"
    for other in source.glob("*/*/*.tif"):
        other.write_bytes(b"nothing")
    code, _, err = fcer_main("convert", "--source", source, "--out", "empty")
    assert code == 2
    assert err.endswith(f"fcer: {source}: none of its 4 fires could be converted; see the lines above\n")


def test_killed_in_the_middle_and_started_again_gives_the_same_bytes(source: Path, tmp_path: Path):
    convert(source, tmp_path / "undisturbed", workers=1)
    out = tmp_path / "killed"
    call = "import sys; from pathlib import Path; from fcer.data.conversion import convert; "
    call += "convert(Path(sys.argv[1]), Path(sys.argv[2]), workers=1)"
    process = subprocess.Popen([sys.executable, "-c", call, str(source), str(out)])
    deadline = time.monotonic() + 300
    # Killed while it writes: its unfinished file lies beside
    while not list(out.rglob(".*partial*")) and time.monotonic() < deadline:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it ended before it could be killed: use more fires"
    assert len(digests(out)) < 4
    convert(source, out, workers=1)
    assert digests(out) == digests(tmp_path / "undisturbed"), "same bytes, and nothing left behind"


def test_rasterio_missing_is_said(source: Path, monkeypatch: pytest.MonkeyPatch, fcer_main):
    monkeypatch.setitem(sys.modules, "rasterio", None)
    code, _, err = fcer_main("convert", "--source", source, "--out", "out", "--workers", "1")
    assert code == 2
    assert "GeoTIFFs need the package rasterio: run pip install 'fcer[geo]'" in err
