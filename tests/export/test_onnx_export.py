"""Estimators as ONNX files: onnxruntime predicts what torch predicts."""

import json
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

from cida import CIDAClassifier, CIDARegressor, CidaWarning, Line, Periodic, Product
from cida.committee import members
from cida.export.onnx_export import ExportError, export_onnx
from cida.networks import (
    MLP,
    PAPER_BLOCKS,
    Convolution,
    FramedEncoder,
    GaussianEncoder,
    ImageEncoder,
    IndexedEncoder,
    PlainEncoder,
    RotationTransformer,
    SignalEncoder,
    StochasticLayer,
    TabularEncoder,
)
from cida.networks.serialization import NETWORKS

EQUAL = 1e-5
SEED = 100
ROWS = 120
BRIEF = {"steps": 3, "random_state": SEED}


def vectors(rows, seed=SEED):
    rng = np.random.default_rng(seed)
    u = rng.uniform(0, 10, rows)
    return rng.normal(size=(rows, 4)) + 0.3 * u[:, None], u


def images(rows, seed=SEED):
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(rows, 1, 12, 12)).astype(np.float32), rng.uniform(0, 360, rows)


def signals(rows, seed=SEED):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, 1, 200)).astype(np.float32), rng.uniform(20, 80, rows)


def unix(rows, seed=SEED):
    """Ten hours of a day in 2023, in seconds since 1970."""
    x, u = vectors(rows, seed)
    return x, 1.7e9 + 3600 * u


def places(rows, seed=SEED):
    x, u = vectors(rows, seed)
    return x, np.stack([u, np.random.default_rng(seed).uniform(0, 24, rows)], axis=1)


def tabular(rows, seed=SEED):
    """Two numbers, of which the second may be missing, its indicator, and a category."""
    x, u = vectors(rows, seed)
    hole = x[:, 2] > 1.5
    x[:, 1] = np.where(hole, 0.0, x[:, 1])
    return np.column_stack([x[:, :2], hole, (x[:, 3] > 1).astype(float)]), 24 * u


# What can be described by a file can be exported: a case for each class, found by its name.
CASES = {
    "MLP": (vectors, CIDARegressor, {"predictor": MLP(32, [8], 1)}),
    "PlainEncoder": (vectors, CIDAClassifier, {"encoder": PlainEncoder(4, [8], 6)}),
    "IndexedEncoder": (
        places,
        CIDAClassifier,
        {"encoder": IndexedEncoder(4, 3, [8], 6), "space": Product([Line(), Periodic(24)])},
    ),
    "FramedEncoder": (unix, CIDARegressor, {"encoder": FramedEncoder(4, [8], 6)}),
    "TabularEncoder": (
        tabular,
        CIDAClassifier,
        {"encoder": TabularEncoder(2, [1], [2], 2), "space": Periodic(240), "standardize": False},
    ),
    "GaussianEncoder": (
        vectors,
        CIDARegressor,
        {"encoder": GaussianEncoder(IndexedEncoder(4, 1, [8], 12)), "n_draws": 5},
    ),
    "RotationTransformer": (
        images,
        CIDAClassifier,
        {
            "encoder": ImageEncoder(
                12,
                [Convolution(4, pool=2)],
                8,
                RotationTransformer(1, 144, dropout=0.2),
                dropout=0.2,
                fold=2,
            ),
            "n_draws": 4,
        },
    ),
    "ImageEncoder": (
        images,
        CIDAClassifier,
        {
            "encoder": ImageEncoder(
                12, [Convolution(8), Convolution(8, pool=2)], 8, RotationTransformer(2)
            ),
            "space": Periodic(360),
        },
    ),
    "SignalEncoder": (
        signals,
        CIDAClassifier,
        {"encoder": SignalEncoder(1, 0.1, follow=True, blocks=PAPER_BLOCKS[:2])},
    ),
}


def fitted(draw, kind, settings):
    """A model of three steps; rows beyond the middle of u have no label."""
    x, u = draw(ROWS)
    first = u.reshape(ROWS, -1)[:, 0]
    told = x.reshape(ROWS, -1)[:, 0]
    unknown = first > np.median(first)
    if kind is CIDARegressor:
        y = np.where(unknown, np.nan, 1e6 + 300 * told)
    else:
        y = np.where(unknown, None, np.where(told > np.median(told), "high", "low"))
    has_index = not isinstance(settings.get("encoder"), PlainEncoder | None)
    coordinates = "learned" if has_index else "raw"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        return kind(**BRIEF, coordinates=coordinates, **settings).fit(x, y, domain_index=u)


def run(path, x, u):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    kinds = {"tensor(double)": np.float64, "tensor(float)": np.float32}
    given = {"X": x, "u": u.reshape(len(u), -1)}
    feed = {one.name: given[one.name].astype(kinds[one.type]) for one in session.get_inputs()}
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feed), strict=True))


def test_every_network_that_a_file_can_describe_has_a_case():
    # A committee's parts are in tests/estimators/test_adaptive.py, all in one file.
    committee = {name for name, kind in NETWORKS.items() if kind.__module__ == members.__name__}
    assert set(CASES) == set(NETWORKS) - committee


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::cida.CidaWarning")
def test_onnxruntime_predicts_what_torch_predicts_for_one_row_and_for_a_thousand(name, tmp_path):
    draw, kind, settings = CASES[name]
    model = fitted(draw, kind, settings)
    assert any(type(module).__name__ == name for module in model.game_.modules())
    path = tmp_path / "model.onnx"
    random = torch.get_rng_state()
    assert export_onnx(model, path) < EQUAL
    assert torch.equal(random, torch.get_rng_state())
    for rows in (1, 1000):
        x, u = draw(rows, seed=SEED + rows)
        found = run(path, x, u)
        if kind is CIDAClassifier:
            want = model.predict_proba(x, domain_index=u)
            assert np.abs(found["probabilities"] - want).max() < EQUAL
            sure = np.abs(want[:, 0] - want[:, 1]) > EQUAL
            assert (found["label"] == model.predict(x, domain_index=u))[sure].all()
        elif isinstance(settings.get("encoder"), GaussianEncoder):
            want, std = model.predict(x, domain_index=u, return_std=True)
            assert np.abs(found["prediction"] - want).max() < EQUAL * model.state_.labels.scale
            assert np.abs(found["deviation"] - std).max() < EQUAL * model.state_.labels.scale
        else:
            want = model.predict(x, domain_index=u)
            assert set(found) == {"prediction"}
            assert np.abs(found["prediction"] - want).max() < EQUAL * model.state_.labels.scale


def test_a_model_without_an_index_takes_x_alone_and_labels_keep_their_type(tmp_path):
    x, _ = vectors(40)
    y = np.where(x[:, 0] > 1, 7, -3)
    model = CIDAClassifier(**BRIEF).fit(x, y)
    path = tmp_path / "model.onnx"
    assert export_onnx(model, path) < EQUAL
    session = onnxruntime.InferenceSession(path)
    assert [one.name for one in session.get_inputs()] == ["X"]
    assert [one.type for one in session.get_outputs()] == ["tensor(double)", "tensor(int64)"]
    label = session.run(["label"], {"X": x})[0]
    assert (label == model.predict(x)).all()


def test_the_file_says_what_its_inputs_are_and_who_made_it(tmp_path):
    draw, kind, settings = CASES["PlainEncoder"]
    export_onnx(fitted(draw, kind, settings), tmp_path / "model.onnx", check=False)
    made = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(made, full_check=True)
    words = json.loads({prop.key: prop.value for prop in made.metadata_props}["cida"])
    assert [(one["name"], one["shape"]) for one in words["inputs"]] == [
        ("X", ["rows", 4]),
        ("u", ["rows", 1]),
    ]
    assert words["classes"] == ["high", "low"]
    assert made.producer_name == "cida"


# --- what cannot be written ----------------------------------------------------------------------


class Sorted(nn.Module):
    """A row's encoding hangs on how many rows there are: no file could repeat that."""

    def forward(self, x):
        return x[:, :2] / x.shape[0] if x.shape[0] > 1 else 5 * x[:, :2]


class Special(nn.Module):
    """Bessel functions, which ONNX has not."""

    def forward(self, x):
        return torch.special.bessel_j0(x)[:, :2]


class Stranger(StochasticLayer):
    def forward(self, x):
        return x[:, :2]


def refused(encoder, tmp_path, error, words):
    x, u = vectors(60)
    y = np.where(u > 5, -1, (x[:, 0] > 1).astype(int))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        model = CIDAClassifier(**BRIEF, encoder=encoder, coordinates="raw")
        model.fit(x, y, domain_index=u)
    with pytest.raises(error, match=words) as told:
        export_onnx(model, tmp_path / "model.onnx")
    assert "\n" not in str(told.value)
    assert not list(tmp_path.iterdir())


def test_a_file_that_predicts_something_else_is_not_kept(tmp_path):
    refused(Sorted(), tmp_path, ExportError, "differ from the model's by up to")


def test_an_operation_that_onnx_has_not_is_told_in_one_sentence(tmp_path):
    refused(Special(), tmp_path, ValueError, "operation that ONNX has not")


def test_a_stochastic_layer_of_ones_own_is_told_in_one_sentence(tmp_path):
    refused(Stranger(), tmp_path, ValueError, "Stranger, whose draws an ONNX file cannot hold")


def test_an_encoder_in_bfloat16_is_told_in_one_sentence(tmp_path):
    model = fitted(*CASES["ImageEncoder"])
    model.game_.encoder.in_bfloat16 = True
    with pytest.raises(ValueError, match="computes in bfloat16"):
        export_onnx(model, tmp_path / "model.onnx")


def test_a_missing_package_is_one_sentence_with_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("cida.export.onnx_export.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "cida\[onnx\]"'):
        export_onnx(CIDAClassifier(), tmp_path / "model.onnx")
