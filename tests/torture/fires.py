"""Fires, HDF5 and GeoTIFF, for `inspect` and `convert`."""

from pathlib import Path

import h5py
import numpy as np
import rasterio

from .cases import Case, damaged, draw, fresh


def hdf5(rng: np.random.Generator, sound: Path, folder: Path) -> Case:
    """A fire as an HDF5 file, beside one that is sound."""
    good = fresh(sound / "fires" / "2018" / "fire_a.hdf5", folder / "data" / "2018" / "fire_a.hdf5")
    path = fresh(good, good.with_name("fire_b.hdf5"))
    if draw(rng, [True, False]):
        content, what = damaged(path.read_bytes(), rng)
        path.write_bytes(content)
    else:
        what = _change(path, good, rng)
    return _inspect(folder, what)


def _inspect(folder: Path, what: str) -> Case:
    work = ("--work", str(folder / "work"), "--workers", "1")
    return Case(what, ("inspect", "--data", str(folder / "data"), "--crop", "32", *work))


def _change(path: Path, good: Path, rng: np.random.Generator) -> str:
    ways = ["attribute", "shape", "values", "link", "virtual", "empty", "group", "huge", "chunks", "type"]
    what = str(draw(rng, ways))
    with h5py.File(path, "r+") as file:
        values, attributes = file["data"][:], dict(file["data"].attrs)
        if what == "attribute":
            name = str(draw(rng, ["year", "img_dates", "lnglat", "crs", "transform", "fire_name", "source"]))
            odd = [np.inf, -1, "x", b"\xff", h5py.Empty("i4"), [1, 2], ["2018-01-01"] * 7, ["9999-99-99"] * 7, 10**18]
            file["data"].attrs[name] = draw(rng, odd)
            return f"attribute {name}"
        del file["data"]
        if what == "shape":
            file["data"] = np.zeros(draw(rng, [(3,), (7, 23, 0, 4), (7, 22, 40, 40), (0, 23, 40, 40)]), np.float32)
        elif what == "values":
            fill = draw(rng, [np.nan, np.inf, -np.inf, 3e38, -9999.0])
            file["data"] = np.full_like(values, fill)
        elif what == "link":
            file["data"] = draw(rng, [h5py.ExternalLink(good, "data"), h5py.SoftLink("/data")])
        elif what == "virtual":
            layout = h5py.VirtualLayout(values.shape, "<f4")
            layout[:] = h5py.VirtualSource(draw(rng, [good, "nowhere.h5"]), "data", values.shape)
            file.create_virtual_dataset("data", layout)
        elif what == "empty":
            file["data"] = h5py.Empty("f4")
        elif what == "group":
            file.create_group("data")
        elif what == "huge":
            file.create_dataset("data", (10**6, 23, 2000, 2000), "f4", chunks=(1, 23, 100, 100))
        elif what == "chunks":
            file.create_dataset("data", data=values, chunks=(1, 1, 8, 8), compression="gzip", fletcher32=True)
        else:
            file["data"] = values.astype(draw(rng, ["i1", "c8", "S4", "f2", ">f8"]))
        if "data" in file and isinstance(file.get("data", getlink=True), h5py.HardLink):
            file["data"].attrs.update(attributes)
    if what == "chunks":
        content, how = damaged(path.read_bytes(), rng)
        path.write_bytes(content)
        what += f", {how}"
    return what


def geotiff(rng: np.random.Generator, sound: Path, folder: Path) -> Case:
    """A fire as GeoTIFFs with one odd day."""
    fire = fresh(sound / "fires" / "2018" / "fire_a", folder / "data" / "2018" / "fire_a")
    day = sorted(fire.glob("*.tif"))[int(rng.integers(3))]
    what = str(draw(rng, ["damage", "damage", "damage", "vrt", "bands", "size", "place", "nothing", "name"]))
    if what == "damage":
        content, what = damaged(day.read_bytes(), rng)
        day.write_bytes(content)
    elif what == "vrt":
        other = day.with_name("other.vrt")
        other.write_text(
            f'<VRTDataset rasterXSize="40" rasterYSize="40"><VRTRasterBand dataType="Float32" band="1">'
            f"<SimpleSource><SourceFilename>{sound}</SourceFilename></SimpleSource></VRTRasterBand></VRTDataset>"
        )
        other.rename(day)
    elif what == "nothing":
        day.write_bytes(b"")
    elif what == "name":
        day.rename(day.with_name(str(draw(rng, ["2018-13-40.tif", "9999-12-31.tif", "0001-01-01.tif", "day.tif"]))))
    else:
        with rasterio.open(day) as image:
            values, profile = image.read(), image.profile
        if what == "bands":
            values = values[: int(rng.integers(1, 23))]
        elif what == "size":
            values = values[:, : int(rng.integers(1, 40))]
        else:
            profile["transform"] = rasterio.Affine(*draw(rng, [(0, 0, 0, 0, 0, 0), (np.nan, 0, 0, 0, 1, 0)]))
        shape = {"count": values.shape[0], "height": values.shape[1], "width": values.shape[2]}
        with rasterio.open(day, "w", **{**profile, **shape}) as image:
            image.write(values)
    if draw(rng, [True, False]):
        return _inspect(folder, what)
    out = ("--out", str(folder / "out"), "--work", str(folder / "work"), "--workers", "1")
    return Case(f"{what} (convert)", ("convert", "--source", str(folder / "data"), *out))
