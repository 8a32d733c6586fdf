"""The two doors are one: a Python call and ``cida fit`` give the same predictions."""

import numpy as np
import pandas as pd
import pytest

from cida import CIDAClassifier
from cida.cli.app import main
from cida.datasets import make_circle, make_hours, make_rotating_moons, make_sine

STEPS = 40


def world_frame(world):
    """The points of a world as a table; labels of the target are empty."""
    columns = {f"x{k}": column for k, column in enumerate(world.x.T)}
    labels = pd.array(np.where(world.source, world.y, -1), dtype="Int64")
    labels[~world.source] = pd.NA
    return pd.DataFrame({**columns, "u": np.ravel(world.u), "label": labels})


def mixed_frame(rows=500):
    """Numbers, missing values, categories and dates along an age."""
    rng = np.random.default_rng(5)
    age = rng.uniform(20, 80, rows).round(2)
    level = rng.normal(age / 10, 1).round(4)
    sick = level - age / 10 + rng.normal(0, 0.3, rows) > 0
    outcome = np.where(sick, "sick", "well").astype(object)
    outcome[age > 50] = None
    days = rng.integers(0, 400, rows)
    return pd.DataFrame(
        {
            "age": age,
            "level": np.where(rng.random(rows) < 0.1, np.nan, level),
            "ward": rng.choice(["north", "south", "west"], rows),
            "came": pd.Timestamp("2024-01-01") + pd.to_timedelta(days, "D"),
            "smoker": rng.random(rows) < 0.3,
            "outcome": outcome,
        }
    )


FRAMES = {
    "circle": (lambda: world_frame(make_circle(n_per_domain=20, seed=0)), "label", "u"),
    "sine": (lambda: world_frame(make_sine(n_per_domain=40, seed=0)), "label", "u"),
    "moons": (lambda: world_frame(make_rotating_moons(600, seed=0)), "label", "u"),
    "hours": (lambda: world_frame(make_hours(600, seed=0)), "label", "u"),
    "mixed": (mixed_frame, "outcome", "age"),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_table_is_fitted_alike_in_python_and_on_the_command_line(name, tmp_path):
    make, label, index = FRAMES[name]
    frame = make()
    file, run, out = tmp_path / "table.csv", tmp_path / "run", tmp_path / "predicted.csv"
    frame.to_csv(file, index=False)
    fit = ["fit", str(file), "--label", label, "--index", index, "--out", str(run)]
    assert main([*fit, "--steps", str(STEPS), "--seed", "3", "--no-expected"]) == 0
    assert main(["predict", str(run), str(file), "--out", str(out)]) == 0
    model = CIDAClassifier(steps=STEPS, random_state=3)
    model.fit(frame, label, domain_index=[index])
    predicted = pd.read_csv(out)
    classes = [str(each) for each in model.classes_]
    probability = predicted[[f"probability_{each}" for each in classes]].to_numpy()
    np.testing.assert_allclose(probability, model.predict_proba(frame).round(6), atol=1e-12)
    assert predicted["prediction"].astype(str).tolist() == [str(y) for y in model.predict(frame)]
