"""Sites and stations on both sides of the 180th meridian, made up with a seed (no licence needed). Read `Look`, then `make`."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from pathlib import Path

from tests.analysis.desk import Facts
from tests.analysis.making import write_meanings, write_table

RADIUS = 6_371.0088
"""Kilometres: the mean radius of the Earth."""
_EQUATOR = 6_378_137.0


@dataclass(frozen=True)
class Look:
    """Names of the columns (name, east, north of each file), where the points lie, and whether the stations are in metres (EPSG:3857)."""

    sites: tuple[str, str, str]
    stations: tuple[str, str, str]
    centre: tuple[float, float]
    spread: float
    metres: bool
    north_first: bool
    seed: int


LOOK = Look(("site", "lon", "lat"), ("station", "x", "y"), (179.6, -17.5), 2.2, metres=False, north_first=True, seed=51)


def distance(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the kilometres between two points (longitude, latitude) on the sphere."""
    lon, lat, lon2, lat2 = map(math.radians, (*one, *other))
    part = math.sin((lat2 - lat) / 2) ** 2 + math.cos(lat) * math.cos(lat2) * math.sin((lon2 - lon) / 2) ** 2
    return 2 * RADIUS * math.asin(math.sqrt(part))


def make(folder: Path, look: Look = LOOK) -> Facts:
    """Write both files and what they say of themselves."""
    chance = random.Random(look.seed)

    def points(word: str, count: int) -> dict[str, tuple[float, float]]:
        drawn = {}
        for number in range(count):
            lon = look.centre[0] + chance.uniform(-1, 1) * look.spread
            lat = look.centre[1] + chance.uniform(-1, 1) * look.spread
            drawn[f"{word}{number:02d}"] = (round((lon + 180) % 360 - 180, 6), round(lat, 6))
        return drawn

    sites, stations = points("S", 40), points("W", 18)
    rows = [[name, *(point[::-1] if look.north_first else point)] for name, point in sites.items()]
    east_north = [look.sites[0], *(look.sites[:0:-1] if look.north_first else look.sites[1:])]
    write_table(folder / "sites.csv", east_north, rows)
    placed = [[name, *(_mercator(point) if look.metres else point)] for name, point in stations.items()]
    write_table(folder / "stations.csv", look.stations, placed)
    unit = "in metres, EPSG:3857 (Web Mercator)" if look.metres else "in degrees, EPSG:4326"
    meanings = {look.sites[0]: "name of the site", look.sites[1]: "longitude of the site in degrees, EPSG:4326",
                look.sites[2]: "latitude of the site in degrees, EPSG:4326", look.stations[0]: "name of the station",
                look.stations[1]: f"easting of the station {unit}", look.stations[2]: f"northing of the station {unit}"}  # fmt: skip
    write_meanings(folder / "about.md", meanings)
    return {"sites": sites, "stations": stations}


def _mercator(point: tuple[float, float]) -> tuple[float, float]:
    lon, lat = map(math.radians, point)
    return round(_EQUATOR * lon, 3), round(_EQUATOR * math.log(math.tan(math.pi / 4 + lat / 2)), 3)
