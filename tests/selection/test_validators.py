"""Which run is kept, without a label of the target."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import entropy

from cida import selection
from cida.data import IndexedDataset
from cida.datasets import make_hours, make_rotating_moons
from cida.selection import validators
from cida.selection.validation_set import CandidateOutputs, ValidationSet
from cida.selection.validators import VALIDATORS, Validator, get_validator
from cida.spaces import Line, Periodic


def field_of(world, space, held=False):
    x = torch.from_numpy((world.x - world.x.mean(0)) / world.x.std(0)).float()
    u = torch.from_numpy(world.u)[:, None]
    rows = IndexedDataset(x, torch.from_numpy(world.y), u, torch.from_numpy(world.source))
    out = torch.zeros(len(rows), dtype=torch.bool)
    out[rows.source_rows[::10]] = held
    return ValidationSet.from_dataset(space.fit(u), rows, out)


def runs(world, field, accuracies, seed=0):
    """Runs with these accuracies: each gets other rows wrong, none in the source."""
    random = np.random.default_rng(seed)
    truth = world.y[field.row_indices.numpy()]
    found = []
    for accuracy in accuracies:
        wrong = field.is_target & (random.uniform(size=len(truth)) > accuracy)
        labels = np.where(wrong, 1 - truth, truth)
        sure = 0.5 + 0.5 * random.uniform(size=len(truth))
        outputs = np.where(np.arange(2) == labels[:, None], sure[:, None], 1 - sure[:, None])
        z = random.normal(size=(len(truth), 3))
        found.append(CandidateOutputs(outputs, z, loss=float(random.uniform()), refit=lambda: 0.5))
    return found


WORLD = make_rotating_moons(seed=110)


@pytest.fixture(scope="module")
def field():
    return field_of(WORLD, Line(), held=True)


@pytest.fixture(scope="module")
def candidates(field):
    return runs(WORLD, field, np.linspace(0.5, 1, 12))


class TestEveryValidator:
    @pytest.mark.parametrize("name", VALIDATORS)
    def test_gives_each_run_one_finite_score(self, name, field, candidates):
        scores = get_validator(name)(field, candidates)
        assert scores.shape == (12,)
        assert np.isfinite(scores).all()

    @pytest.mark.parametrize("name", [n for n in VALIDATORS if n != "last"])
    def test_does_not_care_in_which_order_runs_come(self, name, field, candidates):
        validator = get_validator(name)
        assert np.allclose(
            validator(field, candidates)[::-1], validator(field, candidates[::-1]), atol=1e-9
        )

    @pytest.mark.parametrize("name", VALIDATORS)
    def test_never_reads_a_target_label(self, name, field, candidates):
        assert (field.y[~field.labelled] == 0).all()  # wiped on the way in
        poisoned = replace(field, y=torch.where(field.labelled, field.y, 1))
        validator = get_validator(name)
        assert np.array_equal(validator(field, candidates), validator(poisoned, candidates))

    def test_is_in_the_catalogue(self):
        classes = {
            kind
            for _, kind in inspect.getmembers(validators, inspect.isclass)
            if issubclass(kind, Validator) and kind is not Validator
        }
        assert classes == set(VALIDATORS.values())


class TestOrder:
    @pytest.mark.parametrize("name", ["consensus", "propagated-labels"])
    def test_runs_are_put_in_the_order_of_their_accuracy(self, name, field, candidates):
        scores = get_validator(name)(field, candidates)
        assert np.corrcoef(scores, np.arange(12))[0, 1] > 0.97

    def test_runs_that_are_wrong_in_the_same_way_do_not_outvote_the_carried_labels(self):
        field = field_of(make_hours(seed=110), Periodic(24))
        truth = make_hours(seed=110).y[field.row_indices.numpy()]
        far = field.is_target & (np.abs(field.u.numpy()[:, 0] - 1) < 6)
        wrong = np.eye(2)[np.where(far, 1 - truth, truth)]
        good = np.eye(2)[truth]
        z = np.zeros((len(truth), 1))
        several = [CandidateOutputs(wrong, z, 0.0)] * 4 + [CandidateOutputs(good, z, 0.0)]
        assert get_validator("consensus")(field, several).argmax() == 4
        assert get_validator("pairwise-agreement")(field, several).argmax() != 4


class TestMargin:
    @pytest.mark.parametrize("name", ["consensus", "propagated-labels"])
    def test_runs_that_differ_in_nothing_need_no_margin(self, name, field, candidates):
        assert get_validator(name).margin(field, candidates[0], candidates[0]) == 0

    def test_it_is_two_standard_errors_of_the_rows_on_which_they_differ(self, field, candidates):
        one, other = candidates[2], candidates[8]
        differ = (one.predictions != other.predictions)[field.is_target].mean()
        expected = 2 * np.sqrt(differ / field.is_target.sum())
        found = get_validator("propagated-labels").margin(field, one, other)
        assert found == pytest.approx(expected)

    def test_equally_good_runs_rarely_differ_by_more(self, field):
        validator = get_validator("propagated-labels")
        several = runs(WORLD, field, [0.9] * 30, seed=5)
        scores = validator(field, several)
        beyond = [
            abs(scores[k] - scores[0]) > validator.margin(field, several[0], several[k])
            for k in range(1, 30)
        ]
        assert np.mean(beyond) < 0.2


class TestAgainstTheirFormulas:
    def test_information_maximisation(self, field, candidates):
        p = candidates[3].outputs[field.is_target]
        expected = entropy(p.mean(0)) - entropy(p, axis=1).mean()
        found = get_validator("information-maximization")(field, candidates)[3]
        assert found == pytest.approx(expected)

    def test_soft_neighbourhood_density_of_equal_rows_is_the_log_of_their_number(self, field):
        same = CandidateOutputs(
            np.tile([0.3, 0.7], (len(field), 1)), np.zeros((len(field), 1)), 0.0
        )
        rows = min(1500, int(field.is_target.sum()))
        found = get_validator("soft-neighborhood-density")(field, [same])[0]
        assert found == pytest.approx(np.log(rows - 1))

    def test_importance_weights_of_an_encoding_that_says_nothing_are_even(self, field, candidates):
        held = field.held_out.numpy()
        truth = field.y.numpy()
        flipped = candidates[0].predictions.copy()
        flipped[np.flatnonzero(held)[::4]] = 1 - truth[np.flatnonzero(held)[::4]]
        blind = CandidateOutputs(np.eye(2)[flipped], np.zeros((len(field), 1)), 0.0)
        found = get_validator("importance-weighted")(field, [blind])[0]
        assert found == pytest.approx((flipped == truth)[held].mean())

    def test_peers_of_two_runs_is_how_far_they_agree(self, field, candidates):
        pair = [candidates[0], candidates[9]]
        agree = (pair[0].predictions == pair[1].predictions)[field.is_target].mean()
        assert get_validator("pairwise-agreement")(field, pair) == pytest.approx([agree, agree])

    def test_neighbours_of_labels_that_are_a_smooth_function_of_x_agree(self, field):
        x = field.x.numpy()
        smooth = np.eye(2)[(x[:, 0] > 0).astype(int)]
        noise = np.eye(2)[np.random.default_rng(0).integers(0, 2, len(x))]
        z = np.zeros((len(x), 1))
        both = [CandidateOutputs(smooth, z, 0.0), CandidateOutputs(noise, z, 0.0)]
        found = get_validator("neighbor-agreement")(field, both)
        assert found[0] > 0.95
        assert 0.4 < found[1] < 0.6

    def test_the_lowest_loss_and_the_last_run(self, field, candidates):
        losses = [candidate.loss for candidate in candidates]
        assert get_validator("lowest-loss")(field, candidates).argmax() == np.argmin(losses)
        assert get_validator("last")(field, candidates).argmax() == 11


class TestRefusals:
    def test_an_unknown_name_is_told_with_the_known_ones(self):
        with pytest.raises(ValueError, match=r"validator is 'best'.*consensus"):
            get_validator("best")

    def test_importance_weights_need_rows_that_were_held_out(self, candidates):
        field = field_of(WORLD, Line())
        with pytest.raises(ValueError, match="hold some out"):
            get_validator("importance-weighted")(field, candidates)

    def test_leave_range_out_needs_runs_that_can_be_played_again(self, field, candidates):
        with pytest.raises(ValueError, match="cannot be"):
            get_validator("leave-range-out")(field, [replace(candidates[0], refit=None)])

    @pytest.mark.parametrize("name", ["soft-neighborhood-density", "information-maximization"])
    def test_probabilities_of_numbers_are_refused(self, name, field, candidates):
        numbers = replace(field, y=field.y.float()[:, None])
        with pytest.raises(ValueError, match="y holds numbers"):
            get_validator(name)(numbers, candidates)


def test_the_names_are_in_the_package():
    assert selection.VALIDATORS is VALIDATORS
