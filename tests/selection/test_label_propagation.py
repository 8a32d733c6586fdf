"""Source labels carried along u, by ways that the source vouches for."""

import numpy as np
import pytest
import torch
from sklearn.kernel_ridge import KernelRidge

from cida.data import IndexedDataset
from cida.datasets import (
    make_circle,
    make_drifting_regression,
    make_hours,
    make_noise_index,
    make_rotating_moons,
    make_sine,
)
from cida.kernel_ridge import RIDGE_PENALTY, kernel_ridge, reduce_columns, squared_distances
from cida.selection.label_propagation import propagate_labels
from cida.selection.validation_set import ValidationSet
from cida.spaces import Periodic, make_line_space


def rows_of(world):
    x = torch.from_numpy((world.x - world.x.mean(0)) / world.x.std(0)).float()
    y = torch.from_numpy(world.y)
    y = y[:, None].float() if y.is_floating_point() else y
    u = torch.from_numpy(world.u.reshape(len(world.u), -1))
    return IndexedDataset(x, y, u, torch.from_numpy(world.source))


def field_of(world, space=None):
    rows = rows_of(world)
    return ValidationSet.from_dataset((space or make_line_space(rows.u.shape[1])).fit(rows.u), rows)


def right(world, field):
    """How often each way carries the right label to the target."""
    truth = world.y[field.row_indices.numpy()]
    carried = field.propagated_labels
    return [(labels == truth)[field.is_target].mean() for labels in carried.labels]


class TestRidge:
    def test_it_is_scikit_learns_kernel_ridge(self):
        random = np.random.default_rng(0)
        x, y, asked = (
            random.normal(size=(40, 3)),
            random.normal(size=(40, 2)),
            random.normal(size=(7, 3)),
        )
        other = KernelRidge(alpha=RIDGE_PENALTY, kernel="rbf", gamma=1 / x.var(axis=0).sum())
        expected = other.fit(x, y - y.mean(0)).predict(asked) + y.mean(0)
        assert np.allclose(kernel_ridge(x, y, asked), expected, atol=1e-8)

    def test_rows_far_away_in_u_say_nothing(self):
        random = np.random.default_rng(0)
        x, y = random.normal(size=(30, 2)), random.normal(size=(30, 1))
        index = np.zeros((30, 1))
        far = kernel_ridge(x, y, x, (index, index + 1e6, 0.1))
        assert np.allclose(far, y.mean(0))

    def test_squares_are_squared_distances(self):
        random = np.random.default_rng(1)
        a, b = random.normal(size=(5, 4)), random.normal(size=(6, 4))
        assert np.allclose(squared_distances(a, b), ((a[:, None] - b[None]) ** 2).sum(-1))

    def test_very_many_columns_become_their_principal_components(self):
        random = torch.Generator().manual_seed(0)
        wide = torch.randn(200, 3, generator=random) @ torch.randn(3, 90, generator=random)
        found = reduce_columns(wide).double().numpy()
        centred = (wide - wide.mean(0)).double().numpy()
        assert found.shape == (200, 50)
        assert np.allclose(
            squared_distances(found, found), squared_distances(centred, centred), atol=1e-3
        )


class TestCarrying:
    @pytest.mark.parametrize(
        ("make", "space"),
        [
            (make_circle, None),
            (make_sine, None),
            (make_rotating_moons, None),
            (make_hours, Periodic(24)),
        ],
    )
    def test_the_way_with_most_say_is_nearly_right_everywhere(self, make, space):
        world = make(seed=110)
        field = field_of(world, space)
        best = int(np.argmax([way.weight for way in field.propagated_labels.propagations]))
        assert right(world, field)[best] > 0.95

    def test_target_labels_are_never_read(self):
        world = make_rotating_moons(seed=110)
        honest = field_of(world).propagated_labels
        world.y[~world.source] = 1 - world.y[~world.source]
        poisoned = field_of(world).propagated_labels
        assert np.array_equal(honest.labels, poisoned.labels)
        assert np.array_equal(honest.confidence, poisoned.confidence)

    def test_the_best_way_has_a_say_of_one_and_none_has_more(self):
        says = [
            way.weight for way in field_of(make_circle(seed=110)).propagated_labels.propagations
        ]
        assert max(says) == 1.0
        assert min(says) >= 0.02

    def test_labels_that_say_nothing_are_unreliable(self):
        world = make_noise_index(seed=110)
        world.y[:] = np.random.default_rng(0).integers(0, 2, len(world.y))
        assert field_of(world).propagated_labels.reliability < 0.2

    def test_numbers_are_carried_too(self):
        world = make_drifting_regression(seed=110)
        field = field_of(world)
        truth = world.y[field.row_indices.numpy()]
        same, weight = field.propagated_labels.agreement(truth)
        assert weight[field.is_target].min() > 0
        assert np.average(same[field.is_target], weights=weight[field.is_target]) > 0.5

    def test_source_rows_keep_their_own_labels(self):
        field = field_of(make_rotating_moons(seed=110))
        for labels in field.propagated_labels.labels:
            assert np.array_equal(labels[~field.is_target], field.y.numpy()[~field.is_target])

    def test_too_few_source_rows_are_refused_with_the_number_needed(self):
        world = make_rotating_moons(n_samples=120, seed=110)
        rows = rows_of(world)
        with pytest.raises(ValueError, match="at least 60"):
            propagate_labels(make_line_space(1).fit(rows.u), rows.x, rows.y, rows.u, rows.labelled)
