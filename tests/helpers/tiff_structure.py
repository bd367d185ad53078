"""A TIFF file by its bytes: where its images and their tiles lie. Enough to tell whether it is cloud-optimized."""

import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 12: 8, 16: 8}
_WIDTH, _HEIGHT, _TILE_WIDTH, _TILE_OFFSETS, _TILE_BYTES = 256, 257, 322, 324, 325


@dataclass
class Image:
    """One image of the file: the map itself first, then its overviews."""

    offset: int
    end: int
    size: tuple[int, int]
    tile: int | None
    tiles: list[tuple[int, int]]
    """Offset and bytes of each tile that is not left out."""


def images_of(path: Path) -> list[Image]:
    data = path.read_bytes()
    assert data[:4] == b"II*\x00", "a little-endian classic TIFF"
    images, (offset,) = [], struct.unpack_from("<I", data, 4)
    while offset:
        images.append(_image(data, offset))
        offset = struct.unpack_from("<I", data, images[-1].end - 4)[0]
    return images


def _image(data: bytes, offset: int) -> Image:
    (count,) = struct.unpack_from("<H", data, offset)
    tags = {}
    for k in range(count):
        tag, kind, number = struct.unpack_from("<HHI", data, offset + 2 + 12 * k)
        place = offset + 2 + 12 * k + 8
        if _SIZES[kind] * number > 4:
            (place,) = struct.unpack_from("<I", data, place)
        if kind in (3, 4):
            tags[tag] = list(struct.unpack_from(f"<{number}{'H' if kind == 3 else 'I'}", data, place))
    tiles = list(zip(tags.get(_TILE_OFFSETS, []), tags.get(_TILE_BYTES, []), strict=True))
    size = (tags[_HEIGHT][0], tags[_WIDTH][0])
    tile = tags[_TILE_WIDTH][0] if _TILE_WIDTH in tags else None
    return Image(offset, offset + 2 + 12 * count + 4, size, tile, [each for each in tiles if each[1]])


def assert_cloud_optimized(path: Path) -> list[Image]:
    """Tiled; all directories before all data; overviews after the image, each half the one before; their data first."""
    images = images_of(path)
    assert all(image.tile and image.tiles for image in images)
    offsets = [image.offset for image in images]
    assert offsets == sorted(offsets)
    data_from = min(offset for image in images for offset, _ in image.tiles)
    assert max(image.end for image in images) <= data_from
    for larger, smaller in pairwise(images):
        assert smaller.size == tuple(-(-side // 2) for side in larger.size)
        assert max(offset for offset, _ in smaller.tiles) < min(offset for offset, _ in larger.tiles)
    assert max(images[-1].size) <= (images[-1].tile or 0), "the smallest fits one tile"
    end = max(offset + length for image in images for offset, length in image.tiles)
    assert end <= path.stat().st_size
    return images
