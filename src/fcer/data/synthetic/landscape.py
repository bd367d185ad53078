"""The land and the weather of a synthetic fire: fields that a spread depends on, and the channels that show them.

Units and rough ranges follow WildfireSpreadTS: reflectances and vegetation indices times 10 000, temperatures
in kelvin (the forecast's in degrees Celsius), directions in degrees clockwise from north.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft, ndimage

from fcer.core.regions import PIXEL_METRES

__all__ = ["Land", "Weather", "make_land", "make_weather", "smooth_noise"]


Field = NDArray[np.float64]


@dataclass(frozen=True)
class Land:
    """What does not change over a fire's days; every field is (height, width)."""

    elevation: Field
    slope: Field
    aspect: Field
    """Direction of the downhill slope."""
    fuel: Field
    """0 (nothing to burn: water, rock) to 1 (dense)."""
    moisture: Field
    """0 (dry) to 1 (wet), of the fuel."""
    land_cover: NDArray[np.int64]
    pdsi: float


@dataclass(frozen=True)
class Weather:
    """One day's weather over the whole image."""

    precipitation: float
    wind_speed: float
    wind_direction: float
    """Where it comes from."""
    temperature_min: float
    temperature_max: float
    humidity: float
    energy_release: float
    dryness: float
    """0 to about 2: how readily fuel burns today."""
    cloudiness: float
    """Share of the image under cloud at the satellite's pass."""


def smooth_noise(rng: np.random.Generator, shape: tuple[int, int], roughness: float) -> Field:
    """Random field with a power-law spectrum, mean 0 and deviation 1; the larger, the smoother."""
    rows, columns = (fft.fftfreq(shape[0])[:, None], fft.rfftfreq(shape[1])[None])
    frequency = np.sqrt(rows**2 + columns**2)
    frequency[0, 0] = np.inf
    spectrum = fft.rfft2(rng.standard_normal(shape)) * frequency ** (-roughness / 2)
    field = fft.irfft2(spectrum, shape)
    return np.asarray((field - field.mean()) / field.std())


def make_land(rng: np.random.Generator, shape: tuple[int, int], drought: float) -> Land:
    """Terrain, and fuel and moisture that follow it."""
    elevation = rng.uniform(400, 1800) + rng.uniform(120, 420) * smooth_noise(rng, shape, 3.2)
    north_south, west_east = np.gradient(elevation, PIXEL_METRES)
    slope = np.degrees(np.arctan(np.hypot(north_south, west_east)))
    # Rows run southwards: the downhill vector points (east, north) = (-d/dcolumn, +d/drow)
    aspect = np.degrees(np.arctan2(-west_east, north_south)) % 360
    shade = np.cos(np.radians(aspect)) * np.minimum(slope, 20) / 20
    moisture = _unit(0.8 * smooth_noise(rng, shape, 2.6) + 0.5 * shade - 0.9 * drought)
    productivity = 0.9 * smooth_noise(rng, shape, 2.4) + 0.4 * (moisture - moisture.mean()) / moisture.std()
    fuel = _unit(productivity + 0.3)
    bare = smooth_noise(rng, shape, 2.8) > 1.75
    water = (smooth_noise(rng, shape, 3.0) > 2.0) & (slope < np.median(slope))
    fuel = np.where(bare | water, 0.0, fuel)
    return Land(
        elevation=elevation,
        slope=slope,
        aspect=aspect,
        fuel=fuel,
        moisture=moisture,
        land_cover=_land_cover(fuel, moisture, bare, water),
        pdsi=float(-2.2 * drought + 0.6 * rng.standard_normal()),
    )


def make_weather(rng: np.random.Generator, days: int, drought: float, windiness: float) -> list[Weather]:
    """`days` of weather in which today resembles yesterday."""
    persistence = 0.8
    wind = rng.standard_normal(2)
    prevailing = rng.uniform(0, 2 * np.pi)
    heat = rng.standard_normal()
    weather = []
    for _ in range(days):
        step = np.sqrt(1 - persistence**2)
        wind = persistence * wind + step * rng.standard_normal(2)
        heat = persistence * heat + step * rng.standard_normal()
        east = windiness * (2.2 * np.cos(prevailing) + 1.4 * wind[0])
        north = windiness * (2.2 * np.sin(prevailing) + 1.4 * wind[1])
        rain = float(rng.gamma(1.0, 3.0)) if rng.random() < 0.06 * (1.5 - drought) else 0.0
        high = 300 + 4 * heat + 3 * drought
        humidity = 0.0055 * np.exp(-0.25 * drought - 0.15 * heat + 0.1 * rng.standard_normal())
        dryness = np.exp(0.35 * drought + 0.25 * heat) / (1 + 0.4 * rain)
        weather.append(
            Weather(
                precipitation=rain,
                wind_speed=float(np.hypot(east, north)),
                # The wind blows towards (east, north), so it comes from the opposite direction
                wind_direction=float(np.degrees(np.arctan2(-east, -north)) % 360),
                temperature_min=float(high - rng.uniform(13, 18)),
                temperature_max=float(high),
                humidity=float(humidity),
                energy_release=float(np.clip(62 + 14 * np.log(dryness) + 2 * rng.standard_normal(), 0, 110)),
                dryness=float(dryness),
                cloudiness=float(np.clip(rng.beta(0.5, 4.0), 0, 0.7)),
            )
        )
    return weather


def coarse_field(rng: np.random.Generator, shape: tuple[int, int], value: float, spread: float) -> Field:
    """A day's value with the slight variation of a weather grid much coarser than the image."""
    cells = rng.normal(value, spread, (5, 5))
    zoom = (shape[0] / 5, shape[1] / 5)
    return np.asarray(ndimage.zoom(cells, zoom, order=1, grid_mode=True, mode="nearest"))


def _unit(field: Field) -> Field:
    """Squashed into 0 to 1."""
    return np.asarray(1 / (1 + np.exp(-1.4 * field)))


def _land_cover(fuel: Field, moisture: Field, bare: NDArray[np.bool_], water: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Classes 1 to 17 of the MODIS scheme that the dataset uses; forests where fuel is dense."""
    classes = np.full(fuel.shape, 10)  # grassland
    classes[fuel > 0.35] = 7  # open shrubland
    classes[fuel > 0.5] = 8  # woody savanna
    classes[fuel > 0.65] = 5  # mixed forest
    classes[(fuel > 0.65) & (moisture > 0.55)] = 1  # evergreen needleleaf forest
    classes[bare] = 16
    classes[water] = 17
    return classes
