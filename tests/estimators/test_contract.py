"""Which labels are read, what goes in and what comes out."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from cida import CIDAClassifier, CIDARegressor, CidaWarning, Line, Periodic, Product

SMALL = {"steps": 5, "encoder_hidden": (8,), "encoding_width": 4, "random_state": 0}


def weights(model):
    """Every weight and buffer of all players, as bytes."""
    return {name: t.numpy().tobytes() for name, t in model.game_.state_dict().items()}


@pytest.fixture(scope="module")
def reference(world):
    """Fitted on float labels with NaN where unlabelled."""
    return CIDAClassifier(**SMALL).fit(world.x, world.training_labels, domain_index=world.u)


# --- unlabelled -------------------------------------------------------------------------------


def blanked(world, labels, blank):
    return [label if known else blank for label, known in zip(labels, world.source, strict=True)]


@pytest.mark.parametrize(
    "mark",
    [
        lambda w, y: np.array(blanked(w, y, np.nan)),
        lambda w, y: np.array(blanked(w, y, None), dtype=object),
        lambda w, y: np.array(blanked(w, y, np.float32("nan")), dtype=object),
        lambda w, y: blanked(w, y, None),
        lambda w, y: pd.Series(blanked(w, y, pd.NA), dtype="Int64"),
        lambda w, y: pd.Series(blanked(w, y, pd.NA), dtype=object),
        lambda w, y: pl.Series(blanked(w, y, None)),
        lambda w, y: pl.DataFrame({"y": blanked(w, y, None)})["y"],
        lambda w, y: torch.tensor(blanked(w, y, float("nan"))),
        lambda w, y: np.array(blanked(w, y, -1)),
        lambda w, y: pl.Series(blanked(w, y, -1)),
    ],
    ids=["nan", "None", "float32", "list", "Int64", "NA", "polars", "frame", "torch", "-1", "pl-1"],
)
def test_every_way_to_say_unlabelled_trains_the_same_model(world, reference, mark):
    y = mark(world, world.y.tolist())
    model = CIDAClassifier(**SMALL).fit(world.x, y, domain_index=world.u)
    assert np.array_equal(model.classes_, [0, 1])
    assert weights(model) == weights(reference)


@pytest.mark.parametrize(
    "mark",
    [
        lambda w, y: np.array(blanked(w, y, None), dtype=object),
        lambda w, y: np.array(blanked(w, y, np.nan), dtype=object),
        lambda w, y: blanked(w, y, None),
        lambda w, y: blanked(w, y, float("nan")),
        lambda w, y: pd.Series(blanked(w, y, None)),
        lambda w, y: pd.Series(blanked(w, y, None), dtype="category"),
        lambda w, y: pl.Series(blanked(w, y, None)),
    ],
    ids=["None", "nan", "list None", "list nan", "pandas", "category", "polars"],
)
def test_text_labels_are_unlabelled_where_they_are_missing(world, reference, mark):
    names = np.where(world.y, "outside", "inside").tolist()
    model = CIDAClassifier(**SMALL).fit(world.x, mark(world, names), domain_index=world.u)
    assert model.classes_.tolist() == ["inside", "outside"]
    assert weights(model) == weights(reference)
    codes = (reference.predict(world.x, domain_index=world.u) == 1).astype(int)
    assert model.predict(world.x, domain_index=world.u).tolist() == [
        ["inside", "outside"][c] for c in codes
    ]


@pytest.mark.parametrize(
    "make",
    [lambda y: pd.Series(y, dtype="Int64"), lambda y: pl.Series(y), lambda y: y],
    ids=["pandas", "polars", "list"],
)
def test_integer_labels_with_gaps_stay_integers(world, make):
    y = blanked(world, world.y.tolist(), None)
    y[-1] = -1
    model = CIDAClassifier(**SMALL).fit(world.x, make(y), domain_index=world.u)
    assert model.classes_.dtype.kind == "i"
    assert model.classes_.tolist() == [0, 1]


def signs(world):
    return np.where(world.y, 1, -1)


def test_minus_one_is_a_class_without_an_index(world):
    model = CIDAClassifier(**SMALL).fit(world.x, signs(world))
    assert model.classes_.tolist() == [-1, 1]
    right = (model.predict(world.x) == signs(world)).mean()
    assert model.score(world.x, signs(world)) == pytest.approx(right)


@pytest.mark.parametrize("make", [np.array, list, pd.Series], ids=["numpy", "list", "pandas"])
def test_minus_one_beside_two_classes_without_an_index_is_warned_of(world, make):
    y = make(np.where(world.source, world.y, -1))
    words = (
        rf"y has -1 in {(~world.source).sum()} of 72 rows beside 2 other classes, and without "
        r"domain_index -1 is a class too: if it marks unlabelled rows, pass domain_index"
    )
    with pytest.warns(CidaWarning, match=words) as told:
        model = CIDAClassifier(**SMALL).fit(world.x, y)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert model.classes_.tolist() == [-1, 0, 1]


def test_minus_one_is_not_warned_of_where_it_is_meant(world):
    y, all_rows = np.where(world.source, world.y, -1), np.ones(72, dtype=bool)
    CIDAClassifier(**SMALL).fit(world.x, y, source=all_rows)
    CIDAClassifier(**SMALL).fit(world.x, y, domain_index=world.u)
    CIDAClassifier(**SMALL).fit(world.x, y.astype(str))
    CIDARegressor(**SMALL).fit(world.x, y)


def test_minus_one_is_a_class_where_source_is_given(world):
    arguments = {"domain_index": world.u, "source": world.source}
    model = CIDAClassifier(**SMALL).fit(world.x, signs(world), **arguments)
    assert model.classes_.tolist() == [-1, 1]


def test_a_class_called_minus_one_is_scored_like_any_other(world):
    arguments = {"domain_index": world.u, "source": world.source}
    model = CIDAClassifier(**SMALL).fit(world.x, signs(world), **arguments)
    right = (model.predict(world.x, domain_index=world.u) == signs(world)).mean()
    assert model.score(world.x, signs(world), domain_index=world.u) == pytest.approx(right)
    assert sum(b.n for b in model.score_by_index(world.x, signs(world), world.u)) == 72


def test_minus_one_is_a_class_in_labels_that_are_not_integers(world):
    y = np.where(world.source, signs(world), np.nan)
    model = CIDAClassifier(**SMALL).fit(world.x, y, domain_index=world.u)
    assert model.classes_.tolist() == [-1.0, 1.0]


def test_minus_one_is_a_number_for_the_regressor(world):
    y = np.where(world.source, signs(world), np.nan)
    floats = CIDARegressor(**SMALL).fit(world.x, y, domain_index=world.u)
    arguments = {"domain_index": world.u, "source": world.source}
    whole = CIDARegressor(**SMALL).fit(world.x, signs(world), **arguments)
    assert weights(floats) == weights(whole)
    assert floats.score(world.x, signs(world), domain_index=world.u) == floats.score(
        world.x, signs(world) * 1.0, domain_index=world.u
    )


# --- source: labels outside are never read ----------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"curriculum": 0.5}])
@pytest.mark.parametrize("poison", [1 << 40, -1, np.nan, np.inf, "text", "other class"])
def test_poisoned_target_labels_do_not_change_a_single_bit(world, options, poison):
    y = world.y.astype(object)
    y[~world.source] = 1 - y[~world.source] if poison == "other class" else poison
    arguments = {"domain_index": world.u, "source": world.source}
    poisoned = CIDAClassifier(**SMALL, **options).fit(world.x, y, **arguments)
    clean = CIDAClassifier(**SMALL, **options).fit(world.x, world.y, **arguments)
    assert weights(poisoned) == weights(clean)
    assert np.array_equal(poisoned.classes_, clean.classes_)


@pytest.mark.parametrize("poison", [1e30, np.nan, np.inf])
def test_poisoned_target_numbers_do_not_change_a_single_bit(world, poison):
    truth = world.x[:, 0] * 3 + world.u
    arguments = {"domain_index": world.u, "source": world.source}
    clean = CIDARegressor(**SMALL).fit(world.x, truth, **arguments)
    poisoned = CIDARegressor(**SMALL).fit(
        world.x, np.where(world.source, truth, poison), **arguments
    )
    assert weights(poisoned) == weights(clean)
    assert np.array_equal(
        poisoned.predict(world.x, domain_index=world.u),
        clean.predict(world.x, domain_index=world.u),
    )


def test_source_labels_do_change_the_model(world, reference):
    arguments = {"domain_index": world.u, "source": world.source}
    flipped = CIDAClassifier(**SMALL).fit(world.x, 1 - world.y, **arguments)
    assert weights(flipped) != weights(reference)


@pytest.mark.parametrize("make", [np.array, list, pd.Series, pl.Series, torch.tensor])
def test_source_may_be_any_container_of_booleans(world, reference, make):
    arguments = {"domain_index": world.u, "source": make(world.source.tolist())}
    model = CIDAClassifier(**SMALL).fit(world.x, world.y, **arguments)
    assert weights(model) == weights(reference)


# --- scores -----------------------------------------------------------------------------------


def test_score_leaves_unlabelled_rows_out(world, reference):
    right = (reference.predict(world.x, domain_index=world.u) == world.y)[world.source].mean()
    for y in [world.training_labels, np.where(world.source, world.y, -1)]:
        assert reference.score(world.x, y, domain_index=world.u) == pytest.approx(right)


def test_score_leaves_unlabelled_rows_out_of_a_plain_model(kind, world):
    model = kind(**SMALL).fit(world.x, world.y)
    alone = model.score(world.x[world.source], world.y[world.source])
    assert model.score(world.x, world.training_labels) == pytest.approx(alone)


def test_the_regressor_scores_r_squared_over_labelled_rows(world):
    truth = world.x[:, 0] + world.u
    y = np.where(world.source, truth, np.nan)
    model = CIDARegressor(**{**SMALL, "steps": 40}).fit(world.x, y, domain_index=world.u)
    known, guess = truth[world.source], model.predict(world.x, domain_index=world.u)[world.source]
    expected = 1 - ((known - guess) ** 2).sum() / ((known - known.mean()) ** 2).sum()
    assert model.score(world.x, y, domain_index=world.u) == pytest.approx(expected)


def test_score_weighs_rows(world, reference):
    weight = np.arange(72.0)
    right = reference.predict(world.x, domain_index=world.u) == world.y
    expected = (weight * right)[world.source].sum() / weight[world.source].sum()
    got = reference.score(
        world.x, world.training_labels, domain_index=world.u, sample_weight=weight
    )
    assert got == pytest.approx(expected)


def test_score_by_index_is_the_accuracy_in_each_cell(world, reference):
    right = reference.predict(world.x, domain_index=world.u) == world.y
    cells = reference.score_by_index(world.x, world.y, world.u, n_bins=3)
    groups = [world.u < 0.3, (world.u > 0.3) & (world.u < 0.7), world.u > 0.7]
    assert [c.n for c in cells] == [24, 24, 24]
    assert [c.score for c in cells] == pytest.approx([right[g].mean() for g in groups])
    assert [c.lo for c in cells] == pytest.approx([0, 1 / 3, 2 / 3])
    assert [c.hi for c in cells] == pytest.approx([1 / 3, 2 / 3, 1])


def test_score_by_index_leaves_unlabelled_rows_and_empty_cells_out(world, reference):
    y = np.where(np.isin(world.u, [0, 1]), world.y, np.nan)
    cells = reference.score_by_index(world.x, y, world.u, n_bins=5)
    assert [(c.lo, c.hi, c.n) for c in cells] == [(0, 0.2, 12), (0.8, 1, 12)]


def test_score_by_index_of_the_regressor_is_the_root_mean_squared_error(world):
    truth = world.x[:, 1]
    arguments = {"domain_index": world.u, "source": world.source}
    model = CIDARegressor(**SMALL).fit(world.x, truth, **arguments)
    error = (model.predict(world.x, domain_index=world.u) - truth) ** 2
    cells = model.score_by_index(world.x, truth, world.u, n_bins=2)
    groups = [world.u < 0.5, world.u > 0.5]
    assert [c.score for c in cells] == pytest.approx([np.sqrt(error[g].mean()) for g in groups])


# --- containers and shapes --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frame", "column"),
    [
        (lambda x: pd.DataFrame(x, columns=["a", "b"]), pd.Series),
        (lambda x: pl.DataFrame(x, schema=["a", "b"]), pl.Series),
        (torch.tensor, torch.tensor),
        (lambda x: torch.tensor(x, requires_grad=True), lambda v: torch.tensor(v)[:, None]),
        (lambda x: x.tolist(), lambda v: v.tolist()),
        (np.asfortranarray, lambda v: v),
    ],
    ids=["pandas", "polars", "torch", "torch with gradient", "lists", "fortran order"],
)
def test_containers_give_the_same_model_and_predictions(world, reference, frame, column):
    x, u = frame(world.x), column(world.u)
    y = column(world.training_labels)
    y = y.ravel() if isinstance(y, torch.Tensor) else y
    model = CIDAClassifier(**SMALL).fit(x, y, domain_index=u)
    assert weights(model) == weights(reference)
    expected = reference.predict_proba(world.x, domain_index=world.u)
    assert np.array_equal(model.predict_proba(x, domain_index=u), expected)


@pytest.mark.parametrize("make", [lambda u: u[:, None], lambda u: pd.DataFrame({"age": u})])
def test_an_index_of_one_column_is_an_index(world, reference, make):
    model = CIDAClassifier(**SMALL).fit(world.x, world.training_labels, domain_index=make(world.u))
    assert weights(model) == weights(reference)


def test_a_prediction_does_not_depend_on_the_rows_it_comes_with(world, reference):
    many = np.tile(world.x, (5, 1))
    together = reference.transform(many, domain_index=np.tile(world.u, 5))
    rows = zip(world.x, world.u, strict=True)
    alone = np.concatenate([reference.transform(x[None], domain_index=[u]) for x, u in rows])
    assert np.array_equal(together, np.tile(alone, (5, 1)))


@pytest.mark.parametrize(
    "labels", [["b", "a", "c"], [10, -5, 3], [0.0, 2.0, 1.0]], ids=["text", "int", "float"]
)
def test_classes_are_sorted_and_predictions_are_labels(world, labels):
    y = np.array(labels)[np.arange(72) % 3]
    model = CIDAClassifier(**SMALL).fit(world.x, y, domain_index=world.u, source=world.source)
    assert model.classes_.tolist() == sorted(labels)
    probability = model.predict_proba(world.x, domain_index=world.u)
    assert probability.shape == (72, 3)
    assert probability.sum(1) == pytest.approx(1)
    assert np.array_equal(
        model.classes_[probability.argmax(1)], model.predict(world.x, domain_index=world.u)
    )
    assert model.predict(world.x, domain_index=world.u).dtype == y.dtype


def test_frames_name_the_features_and_the_encoding(world):
    frame = pd.DataFrame(world.x, columns=["east", "north"])
    model = CIDAClassifier(**SMALL).set_output(transform="pandas")
    model.fit(frame, world.training_labels, domain_index=world.u)
    assert model.feature_names_in_.tolist() == ["east", "north"]
    assert model.n_features_in_ == 2
    names = [f"cidaclassifier{k}" for k in range(4)]
    assert model.get_feature_names_out().tolist() == names
    encoding = model.transform(frame, domain_index=world.u)
    assert encoding.columns.tolist() == names
    assert encoding.shape == (72, 4)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"north": "south"}))


@pytest.mark.parametrize("coordinates", ["auto", "learned"])
def test_fit_transform_is_fit_then_transform(world, kind, coordinates):
    model = kind(**SMALL, coordinates=coordinates)
    encoding = model.fit_transform(world.x, world.training_labels, domain_index=world.u)
    assert np.array_equal(encoding, model.transform(world.x, domain_index=world.u))


@pytest.mark.parametrize("coordinates", ["auto", "raw", "learned"])
def test_periodic_and_product_spaces_wrap_around(kind, world, coordinates):
    u = np.stack([world.u * 20, world.u**2], axis=1)
    space = Product([Periodic(24), Line()])
    model = kind(**SMALL, space=space, coordinates=coordinates)
    model.fit(world.x, world.training_labels, domain_index=u)
    here = model.predict(world.x, domain_index=u)
    around = model.predict(world.x, domain_index=u + np.array([24, 0]))
    assert np.allclose(here, around, atol=1e-5)
    assert model.space_.parts[0] == Periodic(24)
    assert model.space_.parts[1].scale == pytest.approx(u[:, 1].std())
    assert space.parts[1] == Line()  # the parameter itself stays as it was given
    assert model.index_width_ == 2
    with pytest.warns(CidaWarning, match="column 1 of domain_index .* up to 50 away"):
        model.predict(world.x, domain_index=u + np.array([0, 50]))
