"""Files as they are downloaded, in every spelling; and what cannot be used, in one sentence each."""

import gzip
import json
import zipfile
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detection_cases import burning, frame_of, written
from fcer.data.detections.days import day_number
from fcer.data.detections.read import read_detections, read_file
from fcer.data.detections.table import SATELLITES, Detections
from fcer.errors import DataError


def columns_of(table: Detections) -> dict[str, list[float]]:
    return {name: values.tolist() for name, values in vars(table).items()}


def near_real_time(folder: Path, frame: pd.DataFrame) -> Path:
    return written(folder, frame)


def archive(folder: Path, frame: pd.DataFrame) -> Path:
    spelled = frame.rename(columns={"bright_ti4": "brightness", "bright_ti5": "bright_t31"})
    spelled["confidence"] = spelled.confidence.str[0]
    return written(folder, spelled.assign(instrument="VIIRS", type=0, acq_time=spelled.acq_time.astype(int)))


def gzipped(folder: Path, frame: pd.DataFrame) -> Path:
    path = folder / "detections.csv.gz"
    path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    return path


def zipped(folder: Path, frame: pd.DataFrame) -> Path:
    path = folder / "DL_FIRE_SV-C2_1.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Readme.txt", "how to cite")
        archive.writestr("fire_archive_1.csv", frame.iloc[:100].to_csv(index=False))
        archive.writestr("fire_nrt_1.csv", frame.iloc[100:].to_csv(index=False))
    return path


def as_json(folder: Path, frame: pd.DataFrame) -> Path:
    path = folder / "detections.json"
    records = frame.astype({"latitude": str, "scan": str}).to_dict("records")
    path.write_text(json.dumps(records, indent=1))
    return path


@pytest.mark.parametrize("form", [near_real_time, archive, gzipped, zipped, as_json], ids=lambda form: form.__name__)
def test_every_form_and_spelling_holds_the_same(tmp_path: Path, form: Callable[[Path, pd.DataFrame], Path]):
    frame = burning(days=3)
    plain = columns_of(read_file(written(tmp_path, frame, "plain.csv")))
    assert columns_of(read_file(form(tmp_path, frame))) == plain
    assert len(plain["time"]) == len(frame)


@pytest.mark.parametrize(
    ("spelled", "satellite"),
    [(s, 0) for s in ("N", "Suomi NPP", "SNPP", "npp")]
    + [(s, 1) for s in ("1", 1, "1.0", "N20", "NOAA-20", "J1", "noaa20")]
    + [(s, 2) for s in ("2", 2, "N21", "NOAA-21", "J2")],
)
def test_satellites_by_name_or_letter(tmp_path: Path, spelled: object, satellite: int):
    table = read_file(written(tmp_path, frame_of(satellite=spelled)))
    assert SATELLITES[table.satellite[0]] == SATELLITES[satellite]


def test_a_row_means_what_it_says(tmp_path: Path):
    table = read_file(written(tmp_path, frame_of(acq_time="0048", confidence="high", version="2.0NRT", scan=0.51)))
    assert table.time[0] == day_number(date(2020, 8, 1)) * 1440 + 48
    assert (table.confidence[0], table.provisional[0], table.kind[0]) == (2, True, 0)
    assert table.scan[0] == np.float32(0.51)


@given(st.integers(0, 23), st.integers(0, 59), st.sampled_from(["{:02d}{:02d}", "{}{:02d}", "{:02d}:{:02d}"]))
def test_every_time_of_the_day_is_read(tmp_path_factory: pytest.TempPathFactory, hour: int, minute: int, form: str):
    text = str(int(form.format(hour, minute))) if form == "{}{:02d}" else form.format(hour, minute)
    table = read_file(written(tmp_path_factory.mktemp("time"), frame_of(acq_time=text)))
    assert table.time[0] % 1440 == hour * 60 + minute


BAD = {
    "latitude": (frame_of(latitude=[40.0, 91.0]), "line 3: latitude is 91.0, but should be a number from -90 to 90"),
    "longitude": (frame_of(longitude="west"), "line 2: longitude is west, but should be a number from -180 to 180"),
    "time": (frame_of(acq_time="2460"), "line 2: acq_time is 2460, but should be a time from 0000 to 2359"),
    "date": (frame_of(acq_date="2020-02-30"), "line 2: acq_date is 2020-02-30, but should be a date such as"),
    "scan": (frame_of(scan=0.0), "line 2: scan is 0.0, but should be a number from 0.01 to 2"),
    "satellite": (frame_of(satellite="L8"), "line 2: satellite is L8, but should be Suomi NPP, NOAA-20 or NOAA-21"),
    "confidence": (frame_of(confidence="87"), "confidence is 87, but should be low, nominal or high (a number is"),
    "type": (frame_of(type="9"), "line 2: type is 9, but should be 0, 1, 2 or 3"),
    "modis": (frame_of(satellite="Aqua", confidence="87"), "line 2: this is MODIS, whose pixels are 1 km wide; give"),
    "modis said": (frame_of(instrument="MODIS"), "line 2: this is MODIS"),
    "columns": (frame_of().drop(columns=["scan", "acq_date"]), "no column scan, acq_date (found: latitude, long"),
    "no detections": (frame_of().iloc[:0], "not a single detection; give files of days and places with fire"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_values_get_one_sentence_and_exit_code_2(tmp_path: Path, case: str, sentence: Callable[..., str]):
    frame, expected = BAD[case]
    path = written(tmp_path, frame)
    said = sentence(path)
    assert said.startswith(f"fcer: {path}") and expected in said


PAGE = b"<!DOCTYPE html>\n<html><body>Invalid MAP_KEY.</body></html>"
WHOLE = burning(days=2).to_csv(index=False).encode()
FILES = {
    "a web page": (PAGE, "this is a web page, not detections; the link or key was perhaps refused"),
    "empty": (b"", "the file is empty; download it again"),
    "blank": (b"\n\n  \n", "the file is empty; download it again"),
    "a line of text": (b"Invalid MAP_KEY.\n", "no column latitude, longitude"),
    "cut": (WHOLE[:-30], "the file is cut in the middle of its last line; download it again"),
    "cut before the last value": (WHOLE[:-2], "the file is cut in the middle of its last line"),
    "cut gzip": (gzip.compress(WHOLE)[:-40], "the compressed file is cut or damaged; download it again"),
    "cut zip": (b"PK\x03\x04" + bytes(40), "the compressed file is cut or damaged; download it again"),
    "cut json": (b'[{"latitude": 40.0, "longi', "the file is cut or damaged: its list does not end"),
    "json without a list": (b'{"error": "quota"}', 'JSON, but no list of detections (it starts \'{"error"'),
    "json of numbers": (b"[1, 2]", "JSON, but '1' in its list is no detection"),
    "no text": (bytes(range(128, 256)) * 20, "this is no text; give a CSV or JSON file of detections"),
}


@pytest.mark.parametrize("case", FILES)
def test_bad_files_get_one_sentence_and_exit_code_2(tmp_path: Path, case: str, sentence: Callable[..., str]):
    content, expected = FILES[case]
    path = tmp_path / "detections.csv"
    path.write_bytes(content)
    said = sentence(path)
    assert said.startswith(f"fcer: {path}") and expected in said


def test_a_file_that_is_not_there(tmp_path: Path, sentence: Callable[..., str]):
    assert "no such file; give --detections a file as NASA FIRMS offers it" in sentence(tmp_path / "none.csv")
    assert "this is a folder; give --detections the files in it" in sentence(tmp_path)


@given(st.integers(1, len(WHOLE) - 1))
def test_a_file_cut_anywhere_but_at_a_line_s_end_is_refused(tmp_path_factory: pytest.TempPathFactory, at: int):
    path = tmp_path_factory.mktemp("cut") / "cut.csv"
    path.write_bytes(WHOLE[:at])
    whole_lines = WHOLE[: at + 1].endswith(b"\n") or WHOLE[:at].endswith(b"\n")
    if whole_lines and WHOLE[:at].count(b"\n") >= 1:
        assert len(read_file(path)) == len(WHOLE[:at].splitlines()) - 1
    else:
        with pytest.raises(DataError):
            read_detections([path])


def test_a_piece_is_never_larger_than_it_should_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Pieces are joined without a seam, and lines are counted through them."""
    frame = burning(days=4)
    whole = columns_of(read_file(written(tmp_path, frame)))
    monkeypatch.setattr("fcer.data.detections.read._ROWS", 50)
    monkeypatch.setattr("fcer.data.detections.read._BLOCK", 500)
    assert columns_of(read_file(written(tmp_path, frame))) == whole
    assert columns_of(read_file(as_json(tmp_path, frame))) == whole
    frame.loc[130, "latitude"] = 91
    with pytest.raises(DataError, match="line 132: latitude is 91"):
        read_file(written(tmp_path, frame))
    with pytest.raises(DataError, match="record 131: latitude is 91"):
        read_file(as_json(tmp_path, frame))
