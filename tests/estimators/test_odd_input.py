"""Arrays of any shape, type and size: a fit that works, or a sentence that names the argument."""

import os
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import cida
from cida import CIDAClassifier, CIDARegressor, ModelFileError, load

ROWS = 24
LARGE = (1.7e308, -1.7e308, 1e200, 1e39, 5e-324, 1e-310, 0.0, -0.0, 1.0, -3.5)
ODD = (np.nan, np.inf, -np.inf)
ARGUMENTS = ("X", "x", "y", "domain_index", "label", "sample", "feature", "Complex", "target")


def columns(values, width):
    """An array of these values in an order that hypothesis chooses."""
    return st.lists(st.sampled_from(values), min_size=4, max_size=4 * width).map(
        lambda some: np.resize(np.array(some), (ROWS, width))
    )


def numbers(width):
    plain = np.random.default_rng(0).normal(size=(ROWS, width))
    made = [
        st.just(plain),
        columns(LARGE, width),
        columns((*LARGE, *ODD), width),
        columns((0, 1, 2), width),
        columns((2**62, -(2**62), 0, 7), width),
        columns((True, False), width),
        columns((1.0, 1.0), width),
        st.sampled_from([1e-320, 1e-30, 1e30, 1e160, 1e300]).map(lambda by: plain * by),
        st.sampled_from([1e3, 1e9, 1e18, 1e300]).map(lambda by: plain + by),
        st.just(np.repeat(plain[:2], ROWS // 2, axis=0)),
        st.sampled_from(
            ["f2", "f4", "i1", "u8", "?", "c16", "O", "U8", "S8", "M8[D]", "m8[s]"]
        ).map(lambda kind: _cast(plain, kind)),
    ]
    return st.one_of(*made)


def _cast(plain, kind):
    return (10 * plain).astype("i8").astype(kind) if kind[0] in "Mm" else plain.astype(kind)


def shapes(width):
    """Mostly as it should be; else empty, of one row, of one column, flat, or of too many."""
    return st.one_of(
        numbers(width),
        numbers(width),
        numbers(width),
        st.sampled_from([(0, 2), (1, 2), (ROWS, 0), (ROWS,), (ROWS - 1, 2), (ROWS, 2, 2), ()]).map(
            lambda shape: np.ones(shape)
        ),
    )


def labels():
    half = np.arange(ROWS) < ROWS // 2
    known = np.arange(ROWS) % 2
    return st.one_of(
        st.just(np.where(half, known, np.nan)),
        st.just(np.where(half, known, -1)),
        st.just(np.where(half, known, None)),
        st.just(np.where(half, known.astype(str), None)),
        st.just(np.where(half, 1.0, np.nan)),
        st.just(np.full(ROWS, np.nan)),
        st.just(known),
        st.just(half),
        numbers(1).map(lambda column: np.where(half, column[:, 0], None)),
        numbers(1).map(lambda column: column[:, 0]),
    )


def judged(model, x, y, u):
    """Fits and predicts; what comes out is finite, or was refused in words."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", cida.CidaWarning)
        # scikit-learn's, and a help: y may be numbers.
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
        try:
            model.fit(x, y, domain_index=u)
            predicted = model.predict(x, domain_index=u)
        except (ValueError, TypeError) as error:
            words = str(error)
            assert any(name in words for name in ARGUMENTS), words
            assert words.strip(), "it says nothing"
            return
    assert len(predicted) == len(x)
    if predicted.dtype.kind == "f":
        assert np.isfinite(predicted).all()
    if isinstance(model, CIDAClassifier):
        assert np.isfinite(model.predict_proba(x, domain_index=u)).all()


@settings(
    deadline=None,
    max_examples=int(os.environ.get("CIDA_FUZZ_ESTIMATORS", "60")),
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(st.sampled_from([CIDAClassifier, CIDARegressor]), shapes(2), labels(), shapes(1))
def test_a_fit_works_or_says_which_argument_is_wrong(kind, x, y, u):
    judged(kind(steps=2, encoder_hidden=(4,), encoding_width=2, random_state=0), x, y, u)


@pytest.mark.parametrize("kind", [CIDAClassifier, CIDARegressor])
@pytest.mark.parametrize("size", [1.7e308, 1e200])
def test_numbers_that_cannot_be_squared_are_refused_by_name(kind, size):
    x = np.random.default_rng(0).choice([-size, size], (ROWS, 2))
    y = np.where(np.arange(ROWS) < ROWS // 2, np.arange(ROWS) % 2, np.nan)
    with pytest.raises(ValueError, match=r"X has .* beyond what can be computed with"):
        kind(steps=2).fit(x, y, domain_index=np.arange(ROWS))


@pytest.mark.parametrize("size", [1e39, -1e149])
def test_a_huge_column_that_never_changes_does_no_harm(size):
    x = np.column_stack([np.full(ROWS, size), np.arange(ROWS) % 3])
    y = np.where(np.arange(ROWS) < ROWS // 2, np.arange(ROWS) % 2, np.nan)
    judged(CIDARegressor(steps=2, random_state=0), x, y, np.arange(ROWS))
    model = CIDARegressor(steps=2, random_state=0).fit(x, y, domain_index=np.arange(ROWS))
    assert np.isfinite(model.predict(x, domain_index=np.arange(ROWS))).all()


def test_complex_labels_are_no_numbers():
    y = np.array([1 + 0j] * (ROWS - 1) + [None], dtype=object)
    with pytest.raises(ValueError, match=r"y holds '\(1\+0j\)', which is not a number"):
        CIDARegressor(steps=2).fit(np.ones((ROWS, 2)), y, domain_index=np.arange(ROWS))


@pytest.fixture(scope="module")
def fitted():
    x, u = np.random.default_rng(0).normal(size=(ROWS, 2)), np.arange(ROWS)
    y = np.where(u < ROWS // 2, u % 2, np.nan)
    return CIDAClassifier(steps=2, random_state=0).fit(x, y, domain_index=u)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_rows_too_far_away_to_compute_with_are_refused_when_they_are_predicted(fitted):
    with pytest.raises(ValueError, match=r"X holds 1e\+60, too far .* stand for missing ones"):
        fitted.predict(np.full((3, 2), 1e60), domain_index=np.arange(3))


@pytest.mark.parametrize(
    ("name", "number", "words"),
    [
        ("index_seen", 1.2e308, "index_seen holds a number beyond 1e"),
        ("x_mean", -1e200, "x_mean holds a number beyond 1e"),
        ("x_scale", 8e-308, "x_scale has a number that is not above 1e-150"),
    ],
)
def test_a_model_file_with_numbers_that_cannot_be_computed_with_is_refused(
    fitted, tmp_path, name, number, words
):
    fitted.save(tmp_path / "model.cida")
    with safe_open(tmp_path / "model.cida", "pt") as file:
        words_of_it = file.metadata()
    tensors = load_file(tmp_path / "model.cida")
    tensors[name].view(-1)[0] = number
    save_file(tensors, tmp_path / "model.cida", metadata=words_of_it)
    with pytest.raises(ModelFileError, match=words):
        load(tmp_path / "model.cida")
