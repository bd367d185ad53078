"""Synthetic fires in the dataset's own layout: for a first run, for tests, and where the real data is not."""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fcer.config.bounded import parse_json
from fcer.core.regions import PIXEL_METRES
from fcer.data.channels import CHANNELS
from fcer.data.fire import SYNTHETIC, SYNTHETIC_MANIFEST, Place
from fcer.data.geotiff import write_geotiff
from fcer.data.hdf5 import open_hdf5, write_hdf5
from fcer.data.synthetic.landscape import Land, Weather, coarse_field, make_land, make_weather, smooth_noise
from fcer.data.synthetic.spread import FireState, burn_day, ignite
from fcer.errors import ConfigError, DataError
from fcer.runtime.parallel import map_tasks

__all__ = ["COMPOSITE_LAG", "Recipe", "synthesize"]

COMPOSITE_LAG = 8
"""Days until a composite of many days, such as NDVI, shows what a clear sky showed."""


@dataclass(frozen=True)
class Recipe:
    """All that decides a synthetic dataset."""

    years: tuple[int, ...]
    fires_per_year: int
    image_size: tuple[int, int]
    fire_days: tuple[int, int]
    seed: int
    version: int = 3
    """Of the process itself: raised when the same recipe would give other fires."""

    def key(self) -> str:
        """A short name that changes with the recipe."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class _Task:
    recipe: Recipe
    year: int
    index: int
    out: Path
    geotiff: bool

    def __str__(self) -> str:
        return f"fire {self.index} of {self.year}"


def synthesize(recipe: Recipe, out: Path, *, geotiff: bool = False, workers: int = 0) -> int:
    """Write the recipe's fires below `out` and return how many were new; complete ones are not made again.

    HDF5 always, and with `geotiff` the released form beside it.
    """
    _claim(recipe, out)
    tasks = [
        _Task(recipe, year, index, out, geotiff) for year in recipe.years for index in range(recipe.fires_per_year)
    ]
    return sum(made for _, made in map_tasks(_make_fire, tasks, workers=workers, label="synthesize"))


def _claim(recipe: Recipe, out: Path) -> None:
    """One folder holds the fires of one recipe: mixed ones would be a dataset that nobody can make again."""
    manifest = out / SYNTHETIC_MANIFEST
    wanted = json.loads(json.dumps(asdict(recipe)))
    if not manifest.exists():
        if out.exists() and any(p.name.isdigit() for p in out.iterdir()) and not manifest.exists():
            raise ConfigError(f"{out}: holds fires that were not made by `fcer synthesize`; choose another --out")
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=out, prefix=".synthetic-") as partial:
            partial.write(json.dumps(wanted, indent=1) + "\n")
            partial.flush()
            # A link is refused where the name is taken: of two that start at once, one claims the folder
            with contextlib.suppress(FileExistsError):
                os.link(partial.name, manifest)
        manifest.chmod(0o644)
    try:
        found = dict(parse_json(manifest.read_text()))
    except (ValueError, TypeError):
        raise ConfigError(f"{manifest}: damaged; remove {out}, and its fires are made again") from None
    for key, value in wanted.items():
        if found.get(key) != value:
            raise ConfigError(
                f"{out}: holds synthetic fires with {key} {found.get(key)}, not {value}; "
                "choose another --out, or remove the folder"
            )


def _make_fire(task: _Task) -> bool:
    """Write one fire; whether it had to be."""
    recipe = task.recipe
    rng = np.random.default_rng((recipe.seed, task.year, task.index))
    drought, windiness = _year_weather(recipe.seed, task.year)
    height, width = (int(side) for side in rng.integers(*recipe.image_size, 2, endpoint=True))
    days = int(rng.integers(*recipe.fire_days, endpoint=True))
    first = date(task.year, 6, 1) + timedelta(days=int(rng.integers(0, 100)))
    dates = [first + timedelta(days=k) for k in range(days)]
    place, lnglat = _somewhere(rng, height, width)
    folder = task.out / str(task.year) / f"fire_{SYNTHETIC}_{task.year}{task.index:04d}"
    path = folder.with_suffix(".hdf5")
    tifs = [folder / f"{d}.tif" for d in dates] if task.geotiff else []
    if _complete(path) and all(tif.exists() for tif in tifs):
        return False
    images = _days(rng, (height, width), days, drought, windiness)
    if task.geotiff:
        images = _also_geotiff(images, tifs, place)
    write_hdf5(path, images, (days, len(CHANNELS), height, width), dates=dates, lnglat=lnglat, place=place)
    return True


def _also_geotiff(
    images: Iterator[NDArray[np.float32]], tifs: list[Path], place: Place
) -> Iterator[NDArray[np.float32]]:
    """The same days, each written as a GeoTIFF on its way."""
    for image, tif in zip(images, tifs, strict=True):
        write_geotiff(tif, image, place)
        yield image


def _complete(path: Path) -> bool:
    try:
        return path.exists() and open_hdf5(path).days > 0
    except DataError:
        return False  # damaged since: make it again


def _year_weather(seed: int, year: int) -> tuple[float, float]:
    """A year's drought (-0.25 to 0.9) and windiness (0.8 to 1.3): years differ, as real ones do."""
    rng = np.random.default_rng((seed, year))
    return float(rng.uniform(-0.25, 0.9)), float(rng.uniform(0.8, 1.3))


def _somewhere(rng: np.random.Generator, height: int, width: int) -> tuple[Place, tuple[float, float]]:
    """A place in the western United States, on a grid of 375 m."""
    lng, lat = rng.uniform(-123, -108), rng.uniform(34, 48)
    zone = int((lng + 180) // 6) + 1
    # Good to a few km, which is all that a made-up place needs: metres east of the zone's meridian, and north
    east = 500_000 + (lng - (6 * zone - 183)) * 111_320 * np.cos(np.radians(lat))
    north = lat * 110_950
    left, top = round(east - width / 2 * PIXEL_METRES), round(north + height / 2 * PIXEL_METRES)
    transform = (PIXEL_METRES, 0.0, float(left), 0.0, -PIXEL_METRES, float(top))
    return Place(f"EPSG:{32600 + zone}", transform), (float(lng), float(lat))


def _days(
    rng: np.random.Generator, shape: tuple[int, int], days: int, drought: float, windiness: float
) -> Iterator[NDArray[np.float32]]:
    """The fire's days (23, height, width), one after the other."""
    land = make_land(rng, shape, drought)
    weather = make_weather(rng, days + 1, drought, windiness)
    state = FireState(shape)
    ignite(rng, state, land)
    contained = rng.uniform(0.4, 0.9)
    haze = smooth_noise(rng, shape, 2.0)
    scarred = np.zeros(shape, bool)
    shown = [scarred] * COMPOSITE_LAG
    for k in range(days):
        seen = burn_day(rng, state, land, weather[k], effort=contained * k / days)
        cloudy = _cloud(rng, shape, weather[k].cloudiness)
        vegetation = _vegetation(rng, land, haze, scarred, shown[-COMPOSITE_LAG])
        yield _image(rng, land, weather[k], weather[k + 1], vegetation, seen, cloudy)
        shown.append(shown[-1] | (scarred & ~cloudy))
        scarred = state.burnt | state.burning


def _cloud(rng: np.random.Generator, shape: tuple[int, int], cloudiness: float) -> NDArray[np.bool_]:
    """Where cloud hides the ground."""
    cloud = smooth_noise(rng, shape, 3.0)
    return cloud > np.quantile(cloud, 1 - cloudiness) if cloudiness > 0 else np.zeros(shape, bool)


def _image(
    rng: np.random.Generator,
    land: Land,
    today: Weather,
    tomorrow: Weather,
    vegetation: NDArray[np.float64],
    seen: list[tuple[int, NDArray[np.bool_]]],
    cloudy: NDArray[np.bool_],
) -> NDArray[np.float32]:
    """One day as the dataset stores it: what satellites, weather stations and maps would tell of it."""
    shape = land.fuel.shape
    image = np.empty((len(CHANNELS), *shape), np.float32)
    image[0:5] = vegetation
    image[0:3, cloudy] = np.nan
    # Composites over many days have few gaps
    image[3:5, rng.random(shape) < 0.002] = np.nan
    image[5:12] = _weather_channels(rng, today, shape)
    image[12:15] = land.slope, land.aspect, land.elevation
    image[15] = land.pdsi
    image[16] = land.land_cover
    image[17:22] = _forecast_channels(rng, tomorrow, shape)
    image[22] = 0
    for hour, burning in seen:
        # Thin smoke, cool fires and canopy hide about one pixel in six; cloud hides all
        detected = burning & ~cloudy & (rng.random(shape) < 0.75 + 0.2 * land.fuel)
        image[22, detected] = hour
    return image


def _vegetation(
    rng: np.random.Generator,
    land: Land,
    haze: NDArray[np.float64],
    scarred: NDArray[np.bool_],
    composite: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """M11, I2, I1, NDVI and EVI2. Where it burnt, green is gone and the shortwave infrared is bright.

    The day's bands show what was `scarred` by the evening before; the indices are of a `composite` that lags.
    """
    grown = (0.25 + 0.75 * land.fuel) * (0.7 + 0.3 * land.moisture)
    green, indexed = (np.where(gone, 0.35, 1.0) * grown for gone in (scarred, composite))
    noise = rng.normal(0, 1, (5, *land.fuel.shape))
    ndvi = 900 + 7600 * indexed + 120 * noise[3]
    evi2 = 400 + 4300 * indexed + 90 * noise[4]
    near_infrared = 1100 + 2700 * green + 250 * haze + 110 * noise[1]
    red = 2300 - 1700 * green + 220 * haze + 90 * noise[2]
    shortwave = 2900 - 1800 * green * (0.5 + 0.5 * land.moisture) + 900 * scarred + 100 * noise[0]
    return np.stack([shortwave, near_infrared, red, ndvi, evi2])


def _weather_channels(rng: np.random.Generator, today: Weather, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Precipitation, wind speed and direction, temperatures, energy release component, humidity."""
    direction = coarse_field(rng, shape, today.wind_direction, 4.0) % 360
    return np.stack(
        [
            np.full(shape, today.precipitation),
            np.abs(coarse_field(rng, shape, today.wind_speed, 0.15)),
            direction,
            coarse_field(rng, shape, today.temperature_min, 0.4),
            coarse_field(rng, shape, today.temperature_max, 0.4),
            coarse_field(rng, shape, today.energy_release, 0.8),
            coarse_field(rng, shape, today.humidity, 0.00008),
        ]
    )


def _forecast_channels(rng: np.random.Generator, tomorrow: Weather, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Rain, wind speed and direction, temperature (°C), humidity: tomorrow's, with a forecast's error."""
    error = rng.standard_normal(4)
    direction = coarse_field(rng, shape, tomorrow.wind_direction + 18 * error[0], 6.0) % 360
    mean_celsius = (tomorrow.temperature_min + tomorrow.temperature_max) / 2 - 273.15
    return np.stack(
        [
            np.full(shape, max(0.0, tomorrow.precipitation * (1 + 0.3 * error[1]))),
            np.abs(coarse_field(rng, shape, tomorrow.wind_speed * (1 + 0.12 * error[2]), 0.2)),
            direction,
            coarse_field(rng, shape, mean_celsius + 1.2 * error[3], 0.5),
            coarse_field(rng, shape, tomorrow.humidity, 0.0002),
        ]
    )
