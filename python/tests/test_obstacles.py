"""Walls and floors between transmitters and places."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import portolan
import pytest
from conftest import Command
from portolan._obstacles import obstacles_to


def house(seed: int) -> tuple[portolan.Readings, Any, list[Any]]:
    """Four rooms of 10 m with walls of 5 dB between them: readings, masts and the plan."""
    rng = np.random.default_rng(seed)
    masts = np.array([[3.0, 4.0], [16.0, 15.0]])
    places = rng.uniform(0, 20, (70, 2))
    crossed = ((places[:, None] > 10) != (masts[None] > 10)).sum(2)
    far = np.linalg.norm(places[:, None] - masts[None], axis=2).clip(1.0)
    level = -40 - 20 * np.log10(far) - 5.0 * crossed + rng.normal(0, 1.5, far.shape)
    lines = [[[10, 0], [10, 20]], [[0, 10], [20, 10]]]
    plan = [{"type": "LineString", "coordinates": line} for line in lines]
    return portolan.Readings(places, level), masts, plan


@pytest.mark.parametrize("seed", [1, 2])
def test_walls_are_the_same_from_everywhere(tmp_path: Path, command: Command, seed: int) -> None:
    readings, masts, plan = house(seed)
    collection = {"type": "GeometryCollection", "geometries": plan}
    (tmp_path / "plan.geojson").write_text(json.dumps(collection))
    columns = {"x1_m": [10, 0], "y1_m": [0, 10], "x2_m": [10, 20], "y2_m": [20, 10]}
    (tmp_path / "plan.csv").write_text("x1_m,y1_m,x2_m,y2_m\n10,0,10,20\n0,10,20,10\n")
    known = {"x_m": masts[:, 0], "y_m": masts[:, 1], "band": [0, 1]}
    found = []
    for walls in (collection, columns, tmp_path / "plan.geojson", tmp_path / "plan.csv"):
        model = portolan.fit(readings, "field", transmitters=known, walls=walls)
        found.append(model.predict([[14.0, 3.0], [5.0, 5.0]]))
        (column,) = model.report["columns"]
        assert abs(column["coefficient"] - 5) < 4 * column["error"] < 4
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-9)
    readings.write(tmp_path / "readings.npz")
    (tmp_path / "masts.csv").write_text(
        "x_m,y_m,band\n" + "".join(f"{x},{y},{k}\n" for k, (x, y) in enumerate(masts))
    )
    told = command(
        "fit", tmp_path / "readings.npz", "--method", "field", "--json", "-o", tmp_path / "m.npz",
        "--transmitters", tmp_path / "masts.csv", "--walls", tmp_path / "plan.csv",
    )  # fmt: skip
    assert abs(json.loads(told)["columns"][0]["coefficient"] - column["coefficient"]) < 1e-9


def test_walls_for_a_method_that_cannot_use_them_are_refused() -> None:
    readings, _, plan = house(3)
    with pytest.raises(ValueError, match="obstacles: not used by kriging; choose from field, auto"):
        portolan.fit(readings, "kriging", walls=plan[0])
    with pytest.raises(ValueError, match="no wall"):
        portolan.fit(readings, "field", walls={"type": "FeatureCollection", "features": []})


def test_a_plan_elsewhere_is_accepted_if_asked() -> None:
    readings, _, _ = house(5)
    far = {"type": "LineString", "coordinates": [[5000, 0], [5000, 20]]}
    with pytest.raises(ValueError, match="km from the readings"):
        obstacles_to(readings, far, None)
    assert obstacles_to(readings, far, None, accept=True) is not None


def test_floors_of_geojson_need_a_height() -> None:
    readings, masts, plan = house(6)
    feature = {"type": "Feature", "properties": {"level": 0}, "geometry": plan[0]}
    with pytest.raises(ValueError, match="floor-height"):
        portolan.fit(readings, "field", walls=feature)


def test_a_model_with_walls_says_why_it_cannot_be_updated() -> None:
    readings, masts, plan = house(7)
    known = {"x_m": masts[:, 0], "y_m": masts[:, 1], "band": [0, 1]}
    collection = {"type": "GeometryCollection", "geometries": plan}
    model = portolan.fit(readings, "field", transmitters=known, walls=collection)
    with pytest.raises(ValueError, match="obstacles"):
        model.update(readings)


def test_validate_takes_walls() -> None:
    readings, masts, plan = house(4)
    known = {"x_m": masts[:, 0], "y_m": masts[:, 1], "band": [0, 1]}
    collection = {"type": "GeometryCollection", "geometries": plan}
    rows = [
        portolan.validate(readings, ["field"], transmitters=known, walls=walls)
        for walls in (None, collection)
    ]
    without, with_walls = (np.atleast_1d(row["rmse_db"] if hasattr(row, "columns") else row[0]["rmse_db"])[0] for row in rows)
    assert with_walls < 0.9 * without
