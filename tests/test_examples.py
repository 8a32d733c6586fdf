"""The quick start of the README, as a new user types it."""

import importlib.util
import re
from pathlib import Path

import pytest

from cida.cli import main

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sensors(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sensors")
    example("sensors").write(folder / "sensors.csv")
    return folder


def right_by_night(folder, method, capsys):
    run, predicted = folder / method, folder / f"{method}.csv"
    fit = ["fit", str(folder / "sensors.csv"), "--label", "fault", "--index", "hour"]
    more = ["--periodic", "hour:24", "--method", method, "--steps", "400", "--out", str(run)]
    assert main([*fit, *more]) == 0
    assert main(["predict", str(run), str(folder / "sensors.csv"), "--out", str(predicted)]) == 0
    capsys.readouterr()
    example("sensors").score(predicted)
    return float(re.search(r"by night.*: ([\d.]+)%", capsys.readouterr().out)[1])


def test_a_log_that_is_checked_by_day_is_right_by_night_once_it_is_adapted(sensors, capsys):
    plain = right_by_night(sensors, "source-only", capsys)
    adapted = right_by_night(sensors, "auto", capsys)
    assert adapted > 80 > plain + 10  # nobody can be above 84 by much
