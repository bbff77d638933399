"""A solution for the points that reads columns and units from what the files say, and checks that by the values. Read `solve`."""

from __future__ import annotations

from tests.analysis.solving import Steps, add, heading, look, meanings, meant, separator, use


def solve() -> Steps:
    """Load, bring to degrees, measure all pairs on the sphere, draw."""
    known = meanings((yield from use("read_file", "I look at what is here.", path="about.md")))
    site, lon, lat = (
        meant(known, "name of the site"),
        meant(known, "longitude of the site"),
        meant(known, "latitude of the site"),
    )
    station, east, north = (meant(known, f"{word} of the station") for word in ("name", "easting", "northing"))
    head = yield from use("read_file", path="stations.csv", start_line=1, end_line=5)
    yield from heading("Nearest station of each site")
    yield from add("import matplotlib.pyplot as plt\nimport numpy as np\nimport pandas as pd")
    sep = separator(head)
    yield from add(
        f"sites = pd.read_csv('sites.csv', sep={sep!r})\nstations = pd.read_csv('stations.csv', sep={sep!r})\nsites.head()"
    )
    largest = yield from look(f"found = float(stations[[{east!r}, {north!r}]].abs().max().max())")
    if largest > 180:  # no degrees
        assert "3857" in known[east], known[east]
        yield from add(
            f"""
radius = 6378137
stations["lon"] = np.degrees(stations["{east}"] / radius)
stations["lat"] = np.degrees(2 * np.arctan(np.exp(stations["{north}"] / radius)) - np.pi / 2)
stations.describe()
"""
        )
        east, north = "lon", "lat"
    yield from add(
        """
def kilometres(lon1, lat1, lon2, lat2):
    lon1, lat1, lon2, lat2 = map(np.radians, (lon1, lat1, lon2, lat2))
    half = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return 2 * 6371.0088 * np.arcsin(np.sqrt(half))
"""
    )
    yield from add(
        f"""
site_lon, site_lat = sites["{lon}"], sites["{lat}"]
away = kilometres(
    site_lon.to_numpy()[:, None], site_lat.to_numpy()[:, None],
    stations["{east}"].to_numpy(), stations["{north}"].to_numpy(),
)
closest = away.argmin(axis=1)
nearest = pd.DataFrame({{
    "site": sites["{site}"],
    "station": stations["{station}"].to_numpy()[closest],
    "km": away.min(axis=1),
}})
nearest.head()
"""
    )
    yield from add('far = nearest.loc[nearest["km"] > 50, "site"].tolist()\nfar')
    yield from add(
        f"""
fig, ax = plt.subplots(figsize=(7, 4))
ax.scatter(sites["{lon}"] % 360, sites["{lat}"], label="site")
ax.scatter(stations["{east}"] % 360, stations["{north}"], marker="^", label="station")
ax.set(title="Sites and stations", xlabel="Longitude (degrees east)", ylabel="Latitude (degrees)")
ax.legend()
plt.show()
"""
    )
    return "The nearest stations are in `nearest`, the sites without one within 50 km in `far`."
