"""Checks the nearest station of each site by the distance on the sphere, and the sites that have none near. Read `check`."""

from __future__ import annotations

from tests.analysis.desk import Facts, Work
from tests.analysis.geo.data import distance
from tests.analysis.rules import frame, label, says, well_kept


def check(work: Work, facts: Facts) -> None:
    """Go through all pairs; half a per cent is what sphere and ellipsoid differ by."""
    well_kept(work, "nearest", "far", figures=1)
    nearest = frame(work, "nearest")
    assert len(nearest) == len(facts["sites"]), (
        f"there are {len(facts['sites'])} sites, `nearest` has {len(nearest)} rows"
    )
    far = set()
    for site, point in facts["sites"].items():
        station, away = min(
            ((name, distance(point, other)) for name, other in facts["stations"].items()), key=lambda pair: pair[1]
        )
        says(nearest, [site, station], away, within=6e-3, what="km")
        far |= {site} if away > 50 else set()
    assert {label(name) for name in work.clean["far"]} == far, f"far are {sorted(far)}"
    assert any(axes.drawn >= 2 for axes in work.axes), "sites and stations are not both on the map"


SABOTAGES = {
    "measures in degrees as in a plane": (r"(?s)half = .+?\n\s+return [^\n]+", "return 111 * np.hypot(lon2 - lon1, lat2 - lat1)", "km|nothing for"),
    "takes latitude for longitude": (r"sites\[\"(\w+)\"\], sites\[\"(\w+)\"\]", r'sites["\2"], sites["\1"]', "km|nothing for|clean kernel"),
    "says miles": (r"6371\.0088", "3958.8", "km"),
}  # fmt: skip
