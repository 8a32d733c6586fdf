"""Bad input: one sentence that names the argument, what was found and what to do."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from cida import CIDAClassifier, CIDARegressor, CidaWarning, Periodic

SMALL = {"steps": 3, "encoder_hidden": (8,), "encoding_width": 4, "random_state": 0}


@pytest.fixture
def fitted(kind, data):
    return kind(**SMALL).fit(**data)


def one_sentence(caught, *words):
    """The message is one line, ends like a sentence and holds each of the words."""
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    for word in words:
        assert word in message, message


def fit_is_refused(model, data, *words, error=ValueError):
    """The fit fails with that sentence, and does not leave half a model behind."""
    with pytest.raises(error) as caught:
        model.fit(**data)
    one_sentence(caught, *words)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def call_is_refused(call, *words, error=ValueError):
    with pytest.raises(error) as caught:
        call()
    one_sentence(caught, *words)


# --- lengths ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["y", "domain_index"])
def test_lengths_that_differ_are_refused_at_fit(kind, data, name):
    data[name] = data[name][:50]
    fit_is_refused(kind(**SMALL), data, name, "50 rows", "X has 72", "one value for each row")


def test_a_shorter_x_is_refused_at_fit(kind, data):
    data["X"] = data["X"][:50]
    fit_is_refused(kind(**SMALL), data, "y has 72 rows", "X has 50", "one value for each row")


def test_a_source_mask_of_another_length_is_refused(kind, data, world):
    data["source"] = world.source[:50]
    fit_is_refused(kind(**SMALL), data, "source has 50 rows", "X has 72", "one value for each row")


def test_lengths_that_differ_are_refused_at_predict(fitted, world):
    call = lambda: fitted.predict(world.x, domain_index=world.u[:7])  # noqa: E731
    call_is_refused(call, "domain_index has 7 rows", "X has 72", "one value for each row")


def test_lengths_that_differ_are_refused_at_score(fitted, world):
    call = lambda: fitted.score(world.x, world.y[:7], domain_index=world.u)  # noqa: E731
    call_is_refused(call, "y has 7 rows", "X has 72")


@pytest.mark.parametrize("length", [7, 80])
def test_weights_of_another_length_are_refused_at_score(fitted, world, length):
    with pytest.raises(ValueError, match="sample_weight"):
        fitted.score(world.x, world.y, domain_index=world.u, sample_weight=np.ones(length))


@pytest.mark.parametrize("weight", [np.ones(7), -np.ones(72), np.full(72, np.nan)])
def test_weights_that_cannot_be_are_refused_at_fit(kind, data, weight):
    model = kind(**SMALL)
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(**data, sample_weight=weight)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_weights_that_are_zero_on_every_labelled_row_are_refused(kind, data, world):
    data["sample_weight"] = np.where(world.source, 0.0, 1.0)
    words = "sample_weight is zero on every labelled row", "at least one must be positive"
    fit_is_refused(kind(**SMALL), data, *words)


# --- NaN and infinity -------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity")])
@pytest.mark.parametrize("name", ["X", "domain_index"])
def test_values_that_are_not_finite_are_refused_at_fit(kind, data, name, value, word):
    data[name] = data[name].copy()
    data[name][[5, 9]] = value
    words = f"{name} contains {word}", "2 of 72 rows", "row 5, column 0", "fill in or drop"
    fit_is_refused(kind(**SMALL), data, *words)


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_values_that_are_not_finite_are_refused_at_predict(fitted, world, value, word):
    x, u = world.x.copy(), world.u.copy()
    x[3, 1] = u[4] = value
    call_is_refused(lambda: fitted.predict(x), f"X contains {word}", "row 3, column 1")
    call = lambda: fitted.transform(world.x, domain_index=u)  # noqa: E731
    call_is_refused(call, f"domain_index contains {word}", "1 of 72 rows", "row 4")


def test_both_infinities_are_refused_without_a_numpy_warning(kind, data):
    data["X"] = data["X"].copy()
    data["X"][0] = [np.inf, -np.inf]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_is_refused(kind(**SMALL), data, "X contains infinity", "1 of 72 rows")


@pytest.mark.parametrize(
    "make", [lambda u: pd.Series(u).astype("Float64"), lambda u: pl.Series(u)], ids=["pd", "pl"]
)
def test_a_missing_index_in_a_frame_library_is_refused(kind, data, make):
    data["domain_index"] = make([None, *data["domain_index"][1:]])
    fit_is_refused(kind(**SMALL), data, "domain_index contains NaN", "1 of 72 rows", "row 0")


# --- labels -----------------------------------------------------------------------------------


def test_no_labelled_row_is_refused(kind, data):
    data["y"] = np.full(72, np.nan)
    fit_is_refused(kind(**SMALL), data, "y has no labelled row", "72", "label some rows")


def test_no_labelled_row_is_refused_for_minus_one_too(data):
    data["y"] = np.full(72, -1)
    fit_is_refused(CIDAClassifier(**SMALL), data, "y has no labelled row", "72", "label some rows")


def test_an_empty_source_is_refused(kind, data):
    data["source"] = np.zeros(72, dtype=bool)
    fit_is_refused(kind(**SMALL), data, "no labelled row", "72")


def test_a_source_of_numbers_is_refused(kind, data):
    data["source"] = np.ones(72)
    fit_is_refused(kind(**SMALL), data, "source holds float64 values", "give booleans")


def test_a_source_with_missing_labels_in_it_is_refused(kind, data):
    data["source"] = data["domain_index"] < 0.5
    words = "y has 12 missing labels inside source", "labelled rows only"
    fit_is_refused(kind(**SMALL), data, *words)


def test_a_source_without_an_index_is_refused_by_name(kind, data, world):
    data = {"X": world.x, "y": world.y, "source": world.source}
    fit_is_refused(kind(**SMALL), data, "source", "48 of 72 rows", "domain_index")


def test_missing_labels_without_an_index_are_refused(kind, data):
    del data["domain_index"]
    words = "y is missing", "48 of 72 rows", "domain_index is not given", "drop them"
    fit_is_refused(kind(**SMALL), data, *words)


def test_no_unlabelled_row_warns_and_trains_on_the_source_alone(kind, data, world):
    data["y"] = world.y
    with pytest.warns(CidaWarning, match=r"^y has no unlabelled row among its 72.*source alone\.$"):
        adapted = kind(**SMALL).fit(**data)
    assert not hasattr(adapted.game_, "discriminator")
    # Without a discriminator nothing is missing: a warning would be an error here.
    alone = kind(**SMALL, discriminator=None).fit(**data)
    rows = {"X": world.x, "domain_index": world.u}
    assert np.array_equal(adapted.transform(**rows), alone.transform(**rows))


def test_the_warning_about_unlabelled_rows_points_at_the_line_that_called_fit(kind, data, world):
    data["y"] = world.y
    with pytest.warns(CidaWarning) as caught:
        kind(**SMALL).fit(**data)
    assert [w.filename for w in caught] == [__file__]


def test_one_class_is_refused(data):
    data["y"] = np.where(np.isnan(data["y"]), np.nan, 7)
    words = "y has one class (7", "needs at least two", "label rows of another class"
    fit_is_refused(CIDAClassifier(**SMALL), data, *words)


def test_continuous_labels_are_refused_by_the_classifier(data):
    data["y"] = data["y"] + 0.1 * data["X"][:, 0]
    fit_is_refused(CIDAClassifier(**SMALL), data, "Unknown label type: continuous", "classifier")


def test_text_labels_are_refused_by_the_regressor(data):
    data["y"] = np.array(["warm", "cold", None] * 24, dtype=object)
    words = "y holds 'warm'", "not a number", "use CIDAClassifier"
    fit_is_refused(CIDARegressor(**SMALL), data, *words)


def test_infinite_labels_are_refused(kind, data):
    data["y"] = data["y"].copy()
    data["y"][:2] = np.inf
    fit_is_refused(kind(**SMALL), data, "y contains infinity", "2 rows", "drop broken ones")


def test_labels_of_mixed_types_are_refused_rather_than_turned_into_text(data):
    data["y"] = np.array(["a", 1, None] * 24, dtype=object)
    model = CIDAClassifier(**SMALL)
    with pytest.raises((TypeError, ValueError), match=r"(?i)(\by\b|label).*(str|int|mix)"):
        model.fit(**data)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_labels_in_several_columns_are_refused(kind, data):
    data["y"] = np.zeros((72, 2))
    fit_is_refused(kind(**SMALL), data, "y should be a 1d array", "(72, 2)")


# --- the index --------------------------------------------------------------------------------


def test_a_constant_index_is_refused(kind, data):
    data["domain_index"] = np.full(72, 2.5)
    words = "domain_index is constant", "every row has 2.5", "leave it out"
    fit_is_refused(kind(**SMALL), data, *words)


def test_a_constant_column_of_the_index_is_refused(kind, data):
    data["domain_index"] = np.stack([data["domain_index"], np.ones(72)], axis=1)
    words = "domain_index is constant in column 1", "every row has 1", "leave it out"
    fit_is_refused(kind(**SMALL), data, *words)


def test_an_index_that_is_constant_but_for_whole_periods_is_refused(kind, data):
    data["domain_index"] = np.where(data["domain_index"] < 0.3, 5.0, 29.0)
    fit_is_refused(kind(**SMALL, space=Periodic(24)), data, "domain_index is constant")


@pytest.mark.parametrize(
    "make",
    [
        lambda u: [f"site {v:.1f}" for v in u],
        lambda u: [0.1, *[f"site {v:.1f}" for v in u[1:]]],
        lambda u: pd.Series([f"site {v:.1f}" for v in u]),
        lambda u: pl.Series([f"site {v:.1f}" for v in u]),
        lambda u: pd.Categorical([f"site {v:.1f}" for v in u]),
        lambda u: np.array([*u[:-1], "site 0.0"], dtype=object),
        lambda u: pd.DataFrame({"age": u, "place": ["site 0.0"] * len(u)}),
    ],
    ids=["list", "mixed list", "pandas", "polars", "categorical", "one text", "one text column"],
)
def test_a_text_index_is_refused(kind, data, make):
    data["domain_index"] = make(data["domain_index"])
    words = "domain_index holds str", "such as 'site 0.0'", "must be numbers"
    fit_is_refused(kind(**SMALL), data, *words)


def test_an_index_of_dates_is_refused(kind, data):
    data["domain_index"] = pd.date_range("2020-01-01", periods=72)
    words = "domain_index holds datetime", "2020-01-01", "turn dates into days or seconds"
    fit_is_refused(kind(**SMALL), data, *words)


def test_an_index_of_another_width_is_refused_at_predict(fitted, world):
    u = np.stack([world.u, world.u], axis=1)
    words = "domain_index has 2 columns", "fitted with 1", "same index columns"
    call_is_refused(lambda: fitted.predict(world.x, domain_index=u), *words)
    call_is_refused(lambda: fitted.score_by_index(world.x, world.y, u), *words)


def test_an_index_of_three_dimensions_is_refused(kind, data):
    data["domain_index"] = np.zeros((72, 1, 1))
    fit_is_refused(kind(**SMALL), data, "domain_index has 3 dimensions", "one row of numbers")


@pytest.mark.parametrize(
    ("coordinates", "found"), [("moving-frame", "'moving-frame'"), ("learned", "'learned'")]
)
@pytest.mark.parametrize("method", ["predict", "transform"])
def test_a_missing_index_is_refused_where_the_encoder_needs_it(
    kind, data, world, coordinates, found, method
):
    model = kind(**SMALL, coordinates=coordinates).fit(**data)
    words = "domain_index is missing", f"coordinates={found}", "give the index of each row"
    call_is_refused(lambda: getattr(model, method)(world.x), *words)


def test_an_index_is_refused_by_a_model_fitted_without_one(kind, world):
    model = kind(**SMALL).fit(world.x, world.y)
    words = "domain_index was given", "fitted without one", "leave it out or fit again"
    call_is_refused(lambda: model.predict(world.x, domain_index=world.u), *words)
    words = "domain_index was not given to fit", "fit again"
    call_is_refused(lambda: model.score_by_index(world.x, world.y, world.u), *words)


def test_an_index_far_outside_warns_with_the_distance(fitted, world):
    u = np.where(world.u == 1, 3.5, world.u)
    words = r"^domain_index is far .* 12 of 72 rows: up to 2\.5 away.*\(0 to 1\).*trust.*\.$"
    with pytest.warns(CidaWarning, match=words):
        fitted.predict(world.x, domain_index=u)


@pytest.mark.parametrize("method", ["predict", "transform"])
def test_the_warning_about_a_far_index_points_at_the_line_that_asked(fitted, world, method):
    with pytest.warns(CidaWarning) as caught:
        getattr(fitted, method)(world.x, domain_index=world.u + 9)
    assert [w.filename for w in caught] == [__file__]


def test_an_index_just_outside_or_between_does_not_warn(fitted, world):
    fitted.predict(world.x, domain_index=world.u + 0.05)  # CidaWarning is an error in these tests


def test_a_gap_between_fitted_indices_is_not_called_outside(kind, data, world):
    seen = world.u != 0.4
    model = kind(**SMALL).fit(**{name: values[seen] for name, values in data.items()})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(world.x, domain_index=world.u)
    assert not any("outside" in str(w.message) for w in caught)


def test_a_far_index_is_measured_the_short_way_round_a_circle(kind, data, world):
    data["domain_index"] = world.u * 90
    model = kind(**SMALL, space=Periodic(360)).fit(**data)
    model.predict(world.x, domain_index=np.full(72, 355.0))
    with pytest.warns(CidaWarning, match=r"72 of 72 rows: up to 40 away"):
        model.predict(world.x, domain_index=np.full(72, 320.0))


# --- X ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.coo_array])
def test_sparse_x_is_refused(kind, data, fitted, make):
    data["X"] = make(data["X"])
    words = "Sparse data was passed for X", "toarray()"
    with pytest.raises(TypeError) as caught:
        fitted.predict(data["X"])
    one_sentence(caught, *words)
    fit_is_refused(kind(**SMALL), data, *words, error=TypeError)


def test_x_of_another_width_is_refused_at_predict(fitted, world):
    call_is_refused(lambda: fitted.predict(world.x[:, :1]), "X has 1 features", "2 features")


def test_fewer_rows_than_a_batch_are_refused(kind, data):
    words = "batch_size is 100", "X has only 72 rows", "lower it, or leave it out"
    fit_is_refused(kind(**SMALL, batch_size=100), data, *words)


def test_fewer_rows_than_the_default_batch_are_fine(kind, data):
    assert kind(**SMALL).fit(**data).n_steps_ == 3
