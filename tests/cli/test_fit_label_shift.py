"""``cida fit`` says so where the balance of labels moves along the index."""

import re

import numpy as np
import pandas as pd
import pytest

from cida.cli import main


def write(path, low, high, rows=900, label="outcome"):
    """Patients of 20 to 80, labelled up to 50; the share of ill goes from low to high there."""
    rng = np.random.default_rng(0)
    age = np.sort(rng.uniform(20, 80, rows)).round(1)
    share = low + (high - low) * (np.minimum(age, 50) - 20) / 30
    ill = rng.random(rows) < share
    frame = pd.DataFrame(
        {
            "age": age,
            "pulse": rng.normal(80, 5, rows) + 10 * ill,
            "ward": rng.choice(["A", "B"], rows),
            "outcome": np.where(ill, "ill", "well"),
            "cost": (1000 * share + rng.normal(0, 50, rows)).round(),
        }
    )
    frame[label] = frame[label].astype(object).where(age <= 50, None)
    frame.drop(columns=[{"outcome": "cost", "cost": "outcome"}[label]]).to_csv(path, index=False)
    return path


def fit(data, out, *more, label="outcome", index="age"):
    words = ["fit", str(data), "--label", label, "--index", index, "--steps", "3"]
    return main([*words, "--out", str(out), *more])


def warnings_in(text):
    return [line for line in text.splitlines() if line.startswith("warning: ")]


def test_a_class_share_that_moves_is_told_before_training(tmp_path, capsys):
    assert fit(write(tmp_path / "a.csv", 0.2, 0.8), tmp_path / "run") == 0
    said = capsys.readouterr().out
    (line,) = warnings_in(said)
    found = re.fullmatch(
        r"warning: y itself seems to depend on domain_index \(the share of one class in the source "
        r"goes from (\d+)% to (\d+)%\): an encoding that hides the index may hide y with it, and "
        r"be worse than no adaptation; compare with discriminator=None, or use game='conditional' "
        r"with coordinates='raw'\.",
        line,
    )
    low, high = found.groups()
    assert int(low) < 35 < 65 < int(high)
    assert said.index("inputs: ") < said.index(line) < said.index("source rows trained on: ")


def test_numbers_whose_mean_moves_are_told(tmp_path, capsys):
    data = write(tmp_path / "a.csv", 0.2, 0.8, label="cost")
    assert fit(data, tmp_path / "run", "--regression", label="cost") == 0
    (line,) = warnings_in(capsys.readouterr().out)
    found = re.match(
        r"warning: y itself seems to depend on domain_index \((\d+)% of y's variance in the source "
        r"lies between places along u\)",
        line,
    )
    assert 80 < int(found[1]) <= 100


@pytest.mark.parametrize("method", ["auto", "cida", "dann", "windows"])
def test_every_method_that_hides_the_index_tells_it(tmp_path, capsys, method):
    assert fit(write(tmp_path / "a.csv", 0.1, 0.9), tmp_path / "run", "--method", method) == 0
    assert len(warnings_in(capsys.readouterr().out)) == 1


@pytest.mark.parametrize("method", ["conditional", "source-only"])
def test_a_method_that_does_not_hide_it_tells_nothing(tmp_path, capsys, method):
    assert fit(write(tmp_path / "a.csv", 0.1, 0.9), tmp_path / "run", "--method", method) == 0
    assert not warnings_in(capsys.readouterr().out)


def test_labels_that_are_balanced_along_the_index_are_not_told(tmp_path, capsys):
    assert fit(write(tmp_path / "a.csv", 0.4, 0.4), tmp_path / "run") == 0
    assert not warnings_in(capsys.readouterr().out)
    data = write(tmp_path / "b.csv", 0.4, 0.4, label="cost")
    assert fit(data, tmp_path / "other", "--regression", label="cost") == 0
    assert not warnings_in(capsys.readouterr().out)
