"""What accuracy to expect: what leave-range-out says, and where it must not be believed."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cida import CIDAClassifier, Line
from cida.data import IndexedDataset
from cida.selection.expected_score import Calibration, calibrate, expected_scores_by_cell
from cida.selection.label_propagation import PropagatedLabels, Propagation
from cida.selection.validation_set import CandidateOutputs, ValidationSet

pytestmark = pytest.mark.filterwarnings("ignore::cida.CidaWarning")


def carried(labels, says=(1.0,), right=0.9):
    ways = tuple(Propagation(False, False, 0.1, right, say) for say in says)
    labels = np.atleast_2d(labels)
    return PropagatedLabels(ways, labels, np.ones(labels.shape), 0.5, True, 2)


def test_the_ceiling_is_the_share_right_where_run_and_carried_labels_agree():
    predicted = np.array([0, 0, 1, 1, 1, 0])
    right = np.array([True, True, True, False, True, False])
    one = carried([0, 0, 1, 1, 0, 1])  # agrees on the first four, of which three are right
    assert one.accuracy_on_agreement(predicted, right) == pytest.approx((3 + 1) / (4 + 1))
    never = carried(1 - predicted)
    assert never.accuracy_on_agreement(predicted, right) == 1


@given(st.integers(0, 2**32 - 1), st.floats(0.02, 1))
def test_the_ceiling_is_a_share_and_ways_count_by_their_say(seed, say):
    random = np.random.default_rng(seed)
    labels, predicted = random.integers(0, 2, (2, 40)), random.integers(0, 2, 40)
    right = random.random(40) < 0.7
    both = carried(labels, (1.0, say))
    found = both.accuracy_on_agreement(predicted, right)
    weight = (labels[0] == predicted) + say * (labels[1] == predicted)
    assert found == pytest.approx((weight[right].sum() + 1) / (weight.sum() + 1))
    assert 0 < found <= 1


def overlapping(rows=1500, seed=100):
    """Two classes that nobody can tell apart in one row of fourteen; x drifts with u."""
    random = np.random.default_rng(seed)
    u = random.uniform(0, 10, rows)
    y = random.integers(0, 2, rows)
    x = np.stack([3 * y + random.standard_normal(rows), random.standard_normal(rows)], axis=1)
    return (x + 0.2 * u[:, None]).astype(np.float32), y, u


def field_of(x, y, u, source):
    tensors = (torch.from_numpy(each) for each in (x, y, u[:, None], source))
    rows = IndexedDataset(*tensors)
    return ValidationSet.from_dataset(Line().fit(torch.from_numpy(u[:, None])), rows)


def candidate(labels, sure):
    outputs = np.where(np.arange(2) == labels[:, None], sure, 1 - sure)
    return CandidateOutputs(outputs, np.zeros((len(labels), 1)), 0.0)


@pytest.mark.parametrize("sure", [0.7, 0.999])
def test_a_run_that_was_too_modest_is_not_made_surer_than_it_is(sure):
    x, y, u = overlapping()
    field = field_of(x, y, u, u < 4)
    truth = y[field.row_indices.numpy()]
    hidden = np.flatnonzero(field.is_target & (field.u[:, 0].numpy() < 6))
    bayes = (x[field.row_indices.numpy(), 0] - 0.2 * field.u[:, 0].numpy() > 1.5).astype(int)
    found = calibrate(field, candidate(bayes, sure), hidden, truth[hidden])
    right = (bayes == truth)[hidden].mean()
    assert found.bias == pytest.approx(min(0.0, right - sure), abs=0.01)
    assert found.agreement_accuracy == pytest.approx(
        right, abs=0.03
    )  # all agree with the best there is


def test_the_ceiling_scales_what_agreement_implies():
    x, y, u = overlapping(seed=101)
    field = field_of(x, y, u, u < 4)
    run = candidate(np.asarray(field.propagated_labels.labels[0]), 0.9)
    plain, lower = (
        expected_scores_by_cell(field, run, Calibration(0.0, 0.01, 10.0, ceiling), 8)
        for ceiling in (1.0, 0.5)
    )
    for one, other in zip(plain, lower, strict=True):
        assert other.score < one.score


def test_where_classes_overlap_not_more_is_expected_than_anybody_can_reach():
    x, y, u = overlapping(seed=102)
    source = u < 4
    model = CIDAClassifier(steps=300, random_state=100, discriminator=None, coordinates="raw")
    labels = np.where(source, y, np.nan)
    model.fit(x, labels, domain_index=u)
    cells = model.expected_score(x, labels, u, n_bins=6)
    right = model.predict(x, domain_index=u) == y
    for cell in cells:
        mine = ~source & (u >= cell.lo) & (u <= cell.hi)
        assert cell.low <= right[mine].mean() <= cell.high
    assert np.mean([cell.score for cell in cells]) < 0.97
