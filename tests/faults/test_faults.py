"""A full disk, and two at once: one sentence, nothing half-written, nothing lost."""

import os
import resource
import subprocess
import sys

import kills
import pytest

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


# On a full disk Python itself would leave half a module behind, for all that come after.
NO_BYTECODE = {**ENVIRONMENT, "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "table.csv"
    kills.write_table(path)
    return path


def fit_words(table, out, *more):
    words = [sys.executable, "-m", "cida", "fit", str(table), "--label", "ill", "--index", "age"]
    return [*words, "--steps", "60", "--no-expected", "--out", str(out), *more]


def with_room_for(size):
    """No file may grow beyond this many bytes, as on a disk that is full then."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_is_one_sentence_and_leaves_nothing(table, tmp_path):
    ended = subprocess.run(
        fit_words(table, tmp_path / "made/run"), env=NO_BYTECODE, capture_output=True, text=True,
        preexec_fn=with_room_for(20_000),
    )  # fmt: skip
    assert ended.returncode == 2
    said = [line for line in ended.stderr.splitlines() if "checkpoint" not in line]
    (sentence,) = said
    assert sentence.startswith("cida: out is ")
    assert "where nothing can be written (File too large); choose another place." in sentence
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_cannot_be_written_does_not_end_the_training(tmp_path):
    script = """
import resource, sys, warnings
import cida
from cida.datasets import make_circle

world = make_circle(n_per_domain=12, seed=100)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
warnings.simplefilter("always")
with cida.resumable(sys.argv[1], interval_seconds=0):
    model = cida.CIDAClassifier(steps=3, random_state=0).fit(
        world.x, world.training_labels, domain_index=world.u
    )
sys.stdout.write(str(model.n_steps_))
"""
    ended = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "kept")],
        env=NO_BYTECODE, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.stdout == "3"
    assert "(File too large); training continues without." in ended.stderr
    assert not list(tmp_path.rglob("*.safetensors*"))


def test_of_two_that_start_at_once_one_makes_the_run_and_the_other_is_refused(table, tmp_path):
    words = fit_words(table, tmp_path / "run", "--steps", "1500")
    both = [
        subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [process.communicate()[1].decode() for process in both]
    codes = [process.returncode for process in both]
    assert sorted(codes) == [0, 2]
    refused = said[codes.index(2)]
    assert "is in use by another cida command" in refused
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
