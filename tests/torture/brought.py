"""What an agency brings every day: detections for `ingest`, rasters beside them, forecasts for `verify`."""

import gzip
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import rasterio

from .cases import Case, damaged, draw, fresh

_ODD = [
    *("", "nan", "inf", "-999", "1e400", "x", "=1+1", "\x00", "9" * 400, "2020-13-40", "0001-01-01", "9999-12-31"),
    *("2460", "-1", "é", '"', "a,b", "\u202e", "1_000", "0x10", "٣", "nominal"),
]


def detections(rng: np.random.Generator, sound: Path, folder: Path) -> Case:
    """A file as NASA FIRMS offers it, or nearly."""
    content = (sound / "detections.csv").read_bytes()
    kind = str(draw(rng, ["damage", "cell", "cell", "column", "json", "json", "packed", "text"]))
    if kind == "damage":
        content, what = damaged(content, rng)
    elif kind in ("cell", "column"):
        content, what = _cells(content.decode(), rng, whole=kind == "column")
    elif kind == "json":
        content, what = _json(content.decode(), rng)
    elif kind == "packed":
        content, what = _packed(content, rng)
    else:
        text = str(
            draw(rng, ["<html>no key</html>", "\ufeff", "latitude", ",,,\n" * 50, "[" * 50_000, '{"a":' * 50_000])
        )
        content, what = text.encode(str(draw(rng, ["utf-8", "utf-16"]))), f"text {text[:20]!r}"
    path = folder / "detections.csv"
    path.write_bytes(content)
    return Case(what, ("ingest", "--detections", str(path), *_out(folder)))


def _out(folder: Path) -> tuple[str, ...]:
    return ("--out", str(folder / "made"), "--work", str(folder / "work"), "--workers", "1")


def _cells(text: str, rng: np.random.Generator, *, whole: bool) -> tuple[bytes, str]:
    lines = [line.split(",") for line in text.splitlines()]
    column = int(rng.integers(len(lines[0])))
    odd = str(draw(rng, _ODD))
    name = lines[0][column]
    if whole and draw(rng, [True, False]):
        lines[0][column] = odd
    for line in lines[1:] if whole else [lines[int(rng.integers(1, len(lines)))]]:
        line[column] = odd
    return "\n".join(map(",".join, lines)).encode(), f"{name}: {odd[:20]!r}"


def _json(text: str, rng: np.random.Generator) -> tuple[bytes, str]:
    header, *rows = (line.split(",") for line in text.splitlines())
    records = [dict(zip(header, row, strict=True)) for row in rows[:80]]
    what = str(draw(rng, ["whole", "value", "value", "record", "deep", "damage", "endless"]))
    victim = records[int(rng.integers(len(records)))]
    if what == "value":
        victim[str(draw(rng, header))] = draw(rng, [None, [], {}, [[1]], True, 1e308, 10**400, "x" * 5000, -0.0])
    elif what == "record":
        records.append(draw(rng, [None, 1, "x", [], {}, {"latitude": 1}]))
    content = json.dumps(records).encode()
    if what == "deep":
        content = b'[{"latitude": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]"
    elif what == "endless":
        content = b'[{"latitude": "' + b"x" * 8_000_000
    elif what == "damage":
        content, what = damaged(content, rng)
    return content, f"JSON, {what}"


def _packed(content: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    what = str(draw(rng, ["gzip", "zip", "zip of nothing", "long line", "encrypted"]))
    if what == "gzip":
        packed = gzip.compress(content)
    elif what == "long line":
        packed = gzip.compress(content + b"9" * 30_000_000)
    else:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.txt" if what == "zip of nothing" else "../../a.csv", content)
        packed = stream.getvalue()
        if what == "encrypted":
            packed = packed[:6] + b"\x01" + packed[7:]
    if what in ("gzip", "zip"):
        packed, how = damaged(packed, rng)
        what = f"{what}, {how}"
    return packed, what


def layers(rng: np.random.Generator, sound: Path, folder: Path) -> Case:
    """A raster of elevation that is none, or is another file's."""
    path = fresh(sound / "elevation.tif", folder / "elevation.tif")
    what = str(draw(rng, ["damage", "damage", "damage", "vrt", "bands", "nowhere", "values", "text"]))
    if what == "damage":
        content, what = damaged(path.read_bytes(), rng)
        path.write_bytes(content)
    elif what == "vrt":
        path.write_text(_list_of(sound / "elevation.tif", 1))
    elif what == "text":
        path.write_text(str(draw(rng, ["", "II*", "<a/>", "ncols 2\nnrows 2\n", "CDF\x01"])))
    else:
        with rasterio.open(path) as image:
            values, profile = image.read(), image.profile
        if what == "bands":
            values = np.repeat(values, 3, axis=0)
        elif what == "nowhere":
            odd = [{"crs": None}, {"transform": rasterio.Affine(0, 0, 0, 0, 0, 0)}, {"crs": "EPSG:4978"}]
            profile.update(draw(rng, odd))
        else:
            values[:] = draw(rng, [np.nan, np.inf, -3e38])
        with rasterio.open(path, "w", **{**profile, "count": len(values)}) as image:
            image.write(values)
    given = ("--detections", str(sound / "detections.csv"), "--layer", f"elevation={path}")
    return Case(what, ("ingest", *given, *_out(folder)), refuse=what == "vrt")


def _list_of(path: Path, bands: int) -> str:
    """GDAL's list of files that names another file as its own numbers."""
    with rasterio.open(path) as image:
        place = f"<SRS>{image.crs.to_string()}</SRS><GeoTransform>{', '.join(map(str, image.transform.to_gdal()))}"
        size = f'rasterXSize="{image.width}" rasterYSize="{image.height}"'
    named = "".join(
        f'<VRTRasterBand dataType="Float32" band="{band}"><SimpleSource><SourceFilename>{path}</SourceFilename>'
        f"<SourceBand>{band}</SourceBand></SimpleSource></VRTRasterBand>"
        for band in range(1, bands + 1)
    )
    return f"<VRTDataset {size}>{place}</GeoTransform>{named}</VRTDataset>"


def forecasts(rng: np.random.Generator, sound: Path, folder: Path) -> Case:
    """A map that `verify` is given beside a sound one, or a record that it has kept."""
    path = fresh(sound / "forecast.tif", folder / "maps" / "forecast.tif")
    what = str(draw(rng, ["damage", "damage", "tags", "tags", "vrt", "values", "record"]))
    out = folder / "record"
    if what == "damage":
        content, what = damaged(path.read_bytes(), rng)
        path.write_bytes(content)
    elif what == "vrt":
        path.write_text(_list_of(sound / "forecast.tif", 3))
    elif what == "record":
        out = fresh(sound / "record", out)
        kept = sorted(one for one in out.rglob("*") if one.is_file() and one.stat().st_size)
        victim = kept[int(rng.integers(len(kept)))]
        content, how = damaged(victim.read_bytes(), rng)
        victim.write_bytes(content)
        what = f"record, {victim.name}: {how}"
    else:
        with rasterio.open(path) as image:
            values, profile, tags, names = image.read(), image.profile, image.tags(), image.descriptions
        del tags["CHECKSUM"]  # else nothing more would be looked at
        if what == "values":
            values[int(rng.integers(3))] = draw(rng, [np.nan, np.inf, -1, 7])
        else:
            key = str(draw(rng, sorted(tags)))
            tags[key] = str(
                draw(rng, ["", "nan", "{}", "[]", "x", "[" * 50_000, "9999-99-99", "1e400", "=1", "\u202e"])
            )
            what = f"{key}: {tags[key][:20]}"
        keep = {name: profile[name] for name in ("dtype", "width", "height", "count", "crs", "transform")}
        with rasterio.open(path, "w", driver="GTiff", **keep) as image:
            image.write(values)
            image.update_tags(**tags)
            image.descriptions = names
    given = ("--maps", str(path.parent), "--against", str(sound / "detections.csv"))
    return Case(what, ("verify", *given, "--out", str(out), "--work", str(folder / "work")), refuse=what == "vrt")
