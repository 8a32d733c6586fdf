"""Rotating digits as a benchmark, on the 8 x 8 twin: protocols, scores, and every method."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from cida.experiments.folder_files import load_published_scores
from cida.experiments.jobs import Job
from cida.experiments.rotating_mnist.rotating_dataset import Digits
from cida.experiments.rotating_mnist.rotating_tasks import (
    ROTATING_DIGITS,
    ROTATING_MNIST,
    RotatingTaskData,
)
from cida.experiments.runner import load_completed_run, run_recipe
from cida.experiments.spec import build_recipes
from cida.training import seeded

PUBLISHED = load_published_scores("cida.experiments.rotating_mnist")["rotating-mnist"]

METHODS = ROTATING_DIGITS.methods
PRESETS = [
    pytest.param(benchmark, preset, id=f"{benchmark.name}, {preset}")
    for benchmark in (ROTATING_MNIST, ROTATING_DIGITS)
    for preset in benchmark.presets
]
PROTOCOLS = ("clean", "paper", "development")


def drawn(seed=0, protocol="clean"):
    return ROTATING_DIGITS.draw_data(seed, protocol)


def recipe_of(method, **settings):
    return build_recipes(ROTATING_DIGITS, "best")[method].with_settings(steps=3, **settings)


def pictures(*several):
    """How often each image is there."""
    return Counter(image.numpy().tobytes() for digits in several for image in digits.images)


def tiny(sample, count=80):
    """The same with a few digits of each kind."""
    few = torch.arange(count)
    return replace(
        sample, training_digits=sample.training_digits[few], scored_digits=sample.scored_digits[few]
    )


# --- protocols --------------------------------------------------------------------------------


def test_the_clean_protocol_scores_other_digits_than_it_trains_on():
    sample, whole = drawn(), drawn(protocol="paper").training_digits
    assert len(sample.scored_digits) == 500
    # Together they are all digits, each as often as it is there: none is on both sides.
    assert pictures(sample.training_digits, sample.scored_digits) == pictures(whole)
    assert not pictures(sample.training_digits) & pictures(sample.scored_digits)


def test_development_holds_digits_out_of_the_training_set_alone():
    clean, development = drawn(), drawn(protocol="development")
    both = pictures(development.training_digits, development.scored_digits)
    assert both == pictures(clean.training_digits)
    assert not pictures(development.training_digits) & pictures(development.scored_digits)
    assert not both & pictures(clean.scored_digits)


def test_every_seed_scores_the_same_digits_at_the_same_angles():
    for protocol in ("clean", "development"):
        first, second = (drawn(seed, protocol).scored_dataset() for seed in (0, 1))
        assert torch.equal(first.u, second.u)
        assert torch.equal(first.images, second.images)
        assert torch.equal(first.x, second.x)
        # Yet each trains on a source of its own.
        halves = [drawn(seed, protocol).training_dataset() for seed in (0, 1)]
        assert not torch.equal(halves[0].x, halves[1].x)


def test_scoring_angles_are_none_that_are_trained_on():
    sample = drawn()
    assert not set(sample.scored_dataset().u.flatten().tolist()) & set(
        sample.training_dataset().u.flatten().tolist()
    )


def test_the_papers_protocol_scores_the_very_images_that_it_trains_on():
    sample = tiny(drawn(seed=3, protocol="paper"))
    trained, scored = sample.training_dataset(), sample.scored_dataset()
    every = torch.arange(len(trained))
    assert torch.equal(trained.u, scored.u)
    assert torch.equal(trained[every].x, scored[every].x)
    assert not torch.equal(trained.u, replace(sample, seed=4).training_dataset().u)


def test_images_have_a_frame_so_that_no_turn_cuts_a_corner_off():
    digits = drawn(protocol="paper").training_digits
    assert digits.images.shape == (1797, 1, 12, 12)
    assert digits.images.dtype == torch.uint8
    inside = digits.images[:, :, 2:-2, 2:-2]
    assert inside.sum() == digits.images.sum()
    assert inside.max() == 255
    # The farthest corner of a pixel is sqrt(2) 4 from the middle, and the frame's edge is 6.
    sample = tiny(drawn())
    scored = sample.scored_dataset()
    mass = scored[torch.arange(len(scored))].x.sum((1, 2, 3)).view(8, -1)
    upright = (sample.scored_digits.images.float() / 255).sum((1, 2, 3))
    assert (mass / upright - 1).abs().max() < 0.05


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_only_an_oracle_is_given_target_labels(protocol):
    sample = drawn(protocol=protocol)
    rows, oracle = sample.training_dataset(), sample.training_dataset(oracle=True)
    assert not rows.y[~rows.labelled].any()
    assert (rows.u[rows.labelled] < 45).all()
    assert (rows.u[~rows.labelled] >= 45).all()
    assert oracle.labelled.all()
    assert torch.equal(oracle.y, sample.training_digits.labels[oracle.x])


def test_equal_draws_have_equal_fingerprints_and_others_do_not():
    found = [drawn(seed, p).fingerprint() for seed in (0, 1) for p in PROTOCOLS]
    assert found == [drawn(seed, p).fingerprint() for seed in (0, 1) for p in PROTOCOLS]
    assert len(set(found)) == 6


def test_other_source_labels_have_another_fingerprint():
    sample = tiny(drawn())
    digits = sample.training_digits
    other = replace(sample, training_digits=Digits(digits.images, (digits.labels + 1) % 10))
    assert other.fingerprint() != sample.fingerprint()


# --- scores -----------------------------------------------------------------------------------


class Knows:
    """Right on the first digits of a list, as many as it knows in each interval; else wrong."""

    def __init__(self, truth, known):
        self.truth, self.known = truth, known

    def predict(self, x, domain_index):
        (interval,) = np.unique(domain_index // 45)
        right = np.arange(len(x)) < self.known[int(interval)]
        return np.where(right, self.truth, (self.truth + 1) % 10)


def test_scores_are_the_shares_of_right_digits_in_each_interval():
    sample = tiny(drawn())
    known = [80, 70, 60, 50, 40, 30, 20, 10]
    scores = sample.evaluate(Knows(sample.scored_digits.labels.numpy(), known))
    assert [cell["score"] for cell in scores["by_index"]] == [k / 80 for k in known]
    assert [(cell["lo"], cell["hi"]) for cell in scores["by_index"]] == [
        (45.0 * k, 45.0 * (k + 1)) for k in range(8)
    ]
    assert {cell["n"] for cell in scores["by_index"]} == {80}
    assert scores["source_score"] == 1.0
    assert scores["target_score"] == pytest.approx(0.5)
    assert scores["all_score"] == pytest.approx(0.5625)


def test_more_digits_than_fit_into_one_piece_are_scored_alike():
    sample = tiny(drawn(), 50)
    repeated = torch.arange(50).repeat(90)  # 4,500 an interval: two pieces
    large = replace(sample, scored_digits=sample.scored_digits[repeated])
    sizes = []

    class Nine:
        def predict(self, x, domain_index):
            sizes.append(len(x))
            return np.full(len(x), 9)

    share = float((sample.scored_digits.labels == 9).float().mean())
    scores = large.evaluate(Nine())
    assert sizes == [4096, 404] * 8
    assert all(cell["score"] == pytest.approx(share) for cell in scores["by_index"])


# --- runs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_and_its_row_is_whole(method, tmp_path):
    sample = tiny(drawn(), 300)
    outcome = run_recipe(recipe_of(method), sample, 0, tmp_path)
    row = outcome.result
    cells = [cell["score"] for cell in row.by_index]
    assert (row.method, row.seed, row.fresh) == (method, 0, None)
    assert len(cells) == 8
    assert all(0 <= accuracy <= 1 for accuracy in cells)
    assert row.source_score == cells[0]
    assert row.target_score == pytest.approx(np.mean(cells[1:]))
    assert row.all_score == pytest.approx(np.mean(cells))
    assert outcome.history[-1].step == 3
    adapts = any(set(event.losses) - {"prediction"} for event in outcome.history)
    assert adapts == (method not in ("source-only", "oracle"))
    # Read back from its folder it says the same.
    read = load_completed_run(tmp_path, recipe_of(method))
    assert read.result == row
    assert sample.evaluate(read.model) == sample.evaluate(outcome.model)


@pytest.mark.parametrize("method", ["adda", "dann-merged", "cdann", "cida", "histogram", "oracle"])
def test_a_run_never_reads_a_target_label(method, tmp_path):
    sample = tiny(drawn(), 300)
    rows = sample.training_dataset()
    digits = sample.training_digits
    target = rows.x[~rows.labelled].unique()
    labels = digits.labels.clone()
    labels[target] = (labels[target] + 3) % 10
    poisoned = replace(sample, training_digits=Digits(digits.images, labels))
    weights = []
    for name, data in {"clean": sample, "poisoned": poisoned}.items():
        run_recipe(recipe_of(method), data, 0, tmp_path / name)
        weights.append((tmp_path / name / "model.safetensors").read_bytes())
    assert (weights[0] == weights[1]) == (method != "oracle")


def test_labels_of_scored_digits_change_the_score_alone(tmp_path):
    sample = tiny(drawn(), 300)
    digits = sample.scored_digits
    wrong = replace(sample, scored_digits=Digits(digits.images, (digits.labels + 1) % 10))
    for name, data in {"a": sample, "b": wrong}.items():
        run_recipe(recipe_of("histogram"), data, 0, tmp_path / name)
    a, b = (tmp_path / name / "model.safetensors" for name in ("a", "b"))
    assert a.read_bytes() == b.read_bytes()


def test_the_same_task_is_known_again_and_no_other(tmp_path):
    task = Job("rotating-digits", "best", "clean", "source-only", 0, tmp_path / "run", steps=3)
    row = task.run()
    assert task.find_finished_result() == row
    for change in (
        {"protocol": "development"}, {"protocol": "paper"}, {"method": "oracle"}, {"seed": 1},
        {"steps": 4}, {"steps": None}, {"task_name": "sine"}, {"folder": tmp_path / "other"},
    ):  # fmt: skip
        assert replace(task, **change).find_finished_result() is None, change
    for preset in ROTATING_DIGITS.presets.keys() - {"best"}:
        assert replace(task, preset=preset).find_finished_result() is None, preset


def test_a_run_with_another_network_is_not_the_same(tmp_path, monkeypatch):
    task = Job("rotating-digits", "best", "clean", "source-only", 0, tmp_path, steps=3)
    task.run()
    preset = ROTATING_DIGITS.presets["best"]
    wider = replace(preset, networks=replace(preset.networks, encoding_width=65))
    monkeypatch.setitem(ROTATING_DIGITS.presets, "best", wider)
    assert task.find_finished_result() is None
    monkeypatch.undo()
    assert task.find_finished_result() is not None


# --- recipes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("benchmark", "preset"), PRESETS)
def test_all_methods_of_a_preset_share_one_encoder_up_to_the_width_of_the_index(benchmark, preset):
    shapes = []
    for recipe in build_recipes(benchmark, preset).values():
        encoder = recipe.build_model(0).encoder
        shapes.append({name: tuple(p.shape) for name, p in encoder.named_parameters()})
    for found in shapes[1:]:
        assert found.keys() == shapes[0].keys()
        for name, shape in found.items():
            first = shapes[0][name]
            if name == "transformer.head.bias":
                assert {*shape, *first} <= {1, 2}  # an angle or a direction
            elif name in ("transformer.head.weight", "transformer.body.0.weight"):
                assert abs(shape[1] - first[1]) <= 1  # u on a line or on a circle
            else:
                assert shape == first, name


@pytest.mark.parametrize(("benchmark", "preset"), PRESETS)
def test_in_every_recipe_the_transformer_is_alive(benchmark, preset):
    size = benchmark.presets[preset].networks.size
    seen = {}
    for recipe in build_recipes(benchmark, preset).values():
        encoder = recipe.build_model(0).encoder
        layout = str(encoder.transformer)
        if layout in seen:
            continue
        seen[layout] = recipe.method
        width = recipe.settings["space"].embedding_width
        with seeded(0):
            images, index = torch.rand(8, 1, size, size), torch.randn(8, width)
        for _ in range(2):
            encoder.zero_grad()
            encoder(images, index).square().sum().backward()
            assert encoder.transformer.head.weight.grad.abs().sum() > 0
            torch.optim.SGD(encoder.transformer.parameters(), 1e-3).step()
        for module in encoder.transformer.body:
            if isinstance(module, nn.Linear):
                assert module.weight.grad.abs().sum() > 0
    assert seen


@pytest.mark.parametrize(("benchmark", "preset"), PRESETS)
def test_an_encoder_starts_from_its_seed_alone(benchmark, preset):
    recipe = build_recipes(benchmark, preset)["histogram"]
    first, again, other = (
        torch.cat([p.detach().flatten() for p in recipe.build_model(seed).encoder.parameters()])
        for seed in (0, 0, 1)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(("benchmark", "preset"), PRESETS)
def test_a_preset_names_a_protocol_that_there_is_and_changes_methods_that_there_are(
    benchmark, preset
):
    chosen = benchmark.presets[preset]
    assert chosen.protocol in benchmark.protocols
    assert set(chosen.method_settings) <= set(benchmark.methods)
    found = build_recipes(benchmark, preset)
    assert tuple(found) == METHODS
    assert [name for name, recipe in found.items() if recipe.oracle] == ["oracle"]
    assert found["cua"].settings["curriculum_stages"] == 7
    assert found["dann"].settings["discriminator"].bins == tuple(45 * k + 22.5 for k in range(8))
    assert found["dann"].settings["discriminator"].kernel == 0


def test_a_sample_says_its_name():
    assert isinstance(drawn(), RotatingTaskData)
    assert drawn().name == ROTATING_DIGITS.name


@pytest.mark.parametrize("method", PUBLISHED)
def test_the_papers_mean_is_that_of_its_seven_target_intervals(method):
    record = PUBLISHED[method]
    assert len(record.by_index) == 8
    assert np.mean(record.by_index[1:]) == pytest.approx(record.accuracy, abs=0.0006)
    assert method in METHODS
