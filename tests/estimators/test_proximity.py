"""How labels lie along the index: proximity, the warning, and settings for few source rows."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from cida import CIDAClassifier, CIDARegressor, CidaWarning, Line, Periodic, load
from cida.data import IndexedDataset
from cida.estimators.fitting import _weight_by_proximity
from cida.estimators.summarize import warn_label_shift
from cida.networks import TabularEncoder
from cida.training import proximity_weights

SMALL = {
    "capacity": "mlp",
    "steps": 3,
    "encoder_hidden": (8,),
    "encoding_width": 4,
    "random_state": 0,
}


def ages(rows=600, high=0.9, seed=0, regression=False):
    """u from 0 to 2, labelled up to 1; the share of class 1 goes from 1 - high to high there."""
    rng = np.random.default_rng(seed)
    u = np.sort(rng.uniform(0, 2, rows))
    share = (1 - high) + (2 * high - 1) * np.minimum(u, 1)
    y = 5 * share + rng.normal(size=rows) if regression else rng.random(rows) < share
    x = rng.normal(size=(rows, 2)) + y[:, None]
    return {"X": x, "y": np.where(u <= 1, y, np.nan), "domain_index": u}


# --- the warning ---------------------------------------------------------------------------------


def test_a_class_share_that_moves_is_told_with_what_to_do():
    words = (
        r"y itself seems to depend on domain_index \(the share of one class in the source goes "
        r"from \d+% to \d+%\): an encoding that hides the index may hide y with it, and be worse "
        r"than no adaptation; compare with discriminator=None, or use game='conditional' with "
        r"coordinates='raw'\.$"
    )
    with pytest.warns(CidaWarning, match=words) as caught:
        CIDAClassifier(**SMALL).fit(**ages())
    assert len(caught) == 1
    assert caught[0].filename == __file__  # the user's own line


def test_a_trend_in_numbers_is_told_by_its_share_of_the_variance():
    with pytest.warns(CidaWarning, match=r"\((\d+)% of y's variance in the source lies between"):
        CIDARegressor(**SMALL).fit(**ages(regression=True))


def test_text_labels_and_a_source_are_read_as_ever():
    data = ages()
    source = ~np.isnan(data["y"])
    y = np.where(data["y"] == 1, "ill", "well")
    y[~source] = "hidden"
    with pytest.warns(CidaWarning, match="y itself seems to depend"):
        CIDAClassifier(**SMALL).fit(data["X"], y, data["domain_index"], source=source)


@pytest.mark.parametrize("game", ["dann", "adda", "mdd", "cua", "distance-correlation", "hsic"])
def test_every_game_that_hides_the_index_is_warned_of(game):
    with pytest.warns(CidaWarning, match="y itself seems to depend"):
        CIDAClassifier(game=game, **SMALL).fit(**ages())


@pytest.mark.parametrize(
    "settings",
    [{"game": "conditional"}, {"game": "given-prediction"}, {"discriminator": None}],
    ids=["conditional", "given-prediction", "none"],
)
def test_no_warning_where_the_index_is_not_hidden_from_labels(settings):
    CIDAClassifier(**SMALL, **settings).fit(**ages())  # a warning is an error in these tests


@pytest.mark.parametrize("seed", range(3))
def test_no_warning_where_labels_are_balanced_along_the_index(seed):
    CIDAClassifier(**SMALL).fit(**ages(high=0.5, seed=seed))
    CIDARegressor(**SMALL).fit(**ages(high=0.5, seed=seed, regression=True))


def test_no_warning_of_fewer_than_two_hundred_source_rows_or_without_an_index():
    CIDAClassifier(**SMALL).fit(**ages(rows=360))
    data = ages()
    known = ~np.isnan(data["y"])
    CIDAClassifier(**SMALL).fit(data["X"][known], data["y"][known])


def test_only_source_labels_are_looked_at():
    data = ages(high=0.5)
    source = ~np.isnan(data["y"])
    y = np.where(source, data["y"], data["domain_index"] > 1.5)  # a shift that nobody may see
    CIDAClassifier(**SMALL).fit(data["X"], y, data["domain_index"], source=source)


def test_rows_without_a_target_are_not_looked_at():
    u = torch.linspace(0, 1, 500).double()[:, None]
    y = (u[:, 0] > 0.5).long()
    rows = [IndexedDataset(u.float(), y, u, u[:, 0] <= part) for part in (0.9, 1.0)]
    with pytest.warns(CidaWarning, match="y itself"):
        warn_label_shift(Line(), rows[0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_label_shift(Line(), rows[1])
    assert not caught


# --- proximity -----------------------------------------------------------------------------------


def test_source_rows_are_weighted_by_their_distance_to_the_nearest_target_row():
    rng = np.random.default_rng(0)
    hour = torch.from_numpy(rng.uniform(0, 24, (300, 1)))
    labelled = (hour[:, 0] > 4) & (hour[:, 0] < 20)
    given = torch.from_numpy(rng.uniform(0.5, 2, 300)).float()
    rows = IndexedDataset(torch.zeros(300, 1), torch.zeros(300, 1), hour, labelled, given)
    found = _weight_by_proximity(Periodic(24), rows, 0.4).weight
    gap = (hour[labelled] - hour[~labelled].T).abs()
    distance = torch.minimum(gap, 24 - gap).min(1).values
    expected = given[labelled] * proximity_weights(distance, 0.4).float()
    assert torch.allclose(found[labelled], expected, atol=1e-4)
    assert torch.equal(found[~labelled], given[~labelled])
    assert torch.equal(rows.weight, given)
    noon = (hour[labelled, 0] - 12).abs() < 1
    edge = (hour[labelled, 0] - 12).abs() > 7
    share = (found[labelled] / given[labelled]).double()
    assert share[noon].max() < share[edge].min()


def test_proximity_is_the_same_as_these_sample_weights():
    data = ages(high=0.5)
    known = ~np.isnan(data["y"])
    u = torch.from_numpy(data["domain_index"])[:, None]
    distance = Line().fit(u).distance_to_set(u[known], u[~known])
    weight = np.ones(len(u))
    weight[known] = proximity_weights(distance, 0.3).numpy()
    settings = {**SMALL, "steps": 20, "coordinates": "raw"}
    near = CIDAClassifier(proximity=0.3, **settings).fit(**data)
    same = CIDAClassifier(**settings).fit(**data, sample_weight=weight)
    plain = CIDAClassifier(**settings).fit(**data)
    encoded = [model.transform(data["X"]) for model in (near, same, plain)]
    np.testing.assert_allclose(encoded[0], encoded[1], atol=1e-4)
    assert np.abs(encoded[0] - encoded[2]).max() > 1e-3


def flipping(rows=900, seed=0):
    """y = [x > 0] from u = 0.65 on, the opposite before; labels end at 1."""
    rng = np.random.default_rng(seed)
    u = np.sort(rng.uniform(0, 1.3, rows))
    x = rng.normal(size=(rows, 1))
    truth = np.where(u >= 0.65, x[:, 0] > 0, x[:, 0] < 0).astype(float)
    return x, truth, u


@pytest.mark.parametrize("discriminator", [None, "l2"])
def test_what_holds_near_the_target_is_learned_where_it_counts_most(discriminator):
    x, truth, u = flipping()
    y = np.where(u <= 1, truth, np.nan)
    right = {}
    for proximity in (0.3, 1.0):
        model = CIDAClassifier(
            discriminator, capacity="mlp", proximity=proximity, coordinates="raw",
            encoder_hidden=(16,), steps=150,
            learning_rate=5e-3, game="conditional", random_state=0,
        )  # fmt: skip
        model.fit(x, y, domain_index=u)
        right[proximity] = (model.predict(x[u > 1]) == truth[u > 1]).mean()
    assert right[0.3] > 0.95
    assert right[1.0] < 0.2


@pytest.mark.parametrize("proximity", [0, 0.001])
def test_the_smallest_proximity_still_fits(proximity):
    data = ages(rows=300, high=0.5)
    model = CIDAClassifier(proximity=proximity, **SMALL).fit(**data)
    assert np.isfinite(model.predict_proba(data["X"], domain_index=data["domain_index"])).all()


def test_proximity_means_nothing_where_all_rows_are_labelled(kind):
    data = ages(rows=200, high=0.5)
    known = ~np.isnan(data["y"])
    x, y = data["X"][known], data["y"][known]
    encoded = [kind(proximity=n, **SMALL).fit(x, y).transform(x) for n in (0.2, 1.0)]
    np.testing.assert_array_equal(*encoded)


# --- weight decay and a linear predictor ---------------------------------------------------------


def test_weight_decay_shrinks_what_no_gradient_moves_by_its_closed_form():
    data = ages(rows=300, high=0.5)
    data["X"] = np.concatenate([data["X"], np.full((300, 1), 4.0)], axis=1)  # is 0 when scaled
    weights = []
    for decay in (0.0, 2.0):
        model = CIDAClassifier(
            None, weight_decay=decay, learning_rate=0.01, schedule="constant", ema_decay=0,
            coordinates="raw", **{**SMALL, "steps": 30},
        )  # fmt: skip
        model.fit(**data)
        weights.append(model.game_.encoder.body[0].weight[:, 2])
    shrunk = (1 - 0.01 * 2.0) ** 30
    assert torch.allclose(weights[1], shrunk * weights[0], rtol=1e-4)
    assert weights[0].abs().max() > 0.1


def test_weight_decay_makes_a_flatter_model(kind):
    data = ages(rows=400, high=0.5)
    norms = []
    for decay in (0.0, 10.0):
        model = kind(weight_decay=decay, learning_rate=0.01, **{**SMALL, "steps": 60}).fit(**data)
        norms.append(sum(float(p.detach().square().sum()) for p in model.game_.parameters()))
    assert norms[1] < 0.5 * norms[0]


def test_without_hidden_layers_the_predictor_is_linear_in_the_encoding(kind):
    data = ages(rows=300, high=0.5)
    model = kind(predictor_hidden=(), **SMALL).fit(**data)
    (layer,) = model.game_.predictor
    assert isinstance(layer, nn.Linear)
    where = {"X": data["X"], "domain_index": data["domain_index"]}
    z = model.transform(**where)
    outputs = z @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    if kind is CIDAClassifier:
        expected = outputs.argmax(1)
    else:
        known = data["y"][~np.isnan(data["y"])]
        expected = outputs[:, 0] * known.std() + known.mean()
    np.testing.assert_allclose(model.predict(**where), expected, rtol=1e-4, atol=1e-5)


# --- windows along the index ----------------------------------------------------------------------


def drifting(rows=1500, seed=0):
    """Columns whose level and scale go along u; y is what is left of the first."""
    rng = np.random.default_rng(seed)
    u = np.sort(rng.uniform(0, 3, rows))
    truth = rng.integers(0, 2, rows)
    still = rng.normal(size=(rows, 2)) * 0.6
    still[:, 0] += 2 * truth - 1
    level = np.stack([6 * u + 2 * np.sin(2 * u), 0 * u], axis=1)
    x = level + (1 + u)[:, None] * still
    return {"X": x, "y": np.where(u <= 1, truth, np.nan), "domain_index": u}, truth


def test_in_windows_what_drifts_along_the_index_stands_still():
    data, truth = drifting()
    right = {}
    for mode in ("windows", "raw"):
        model = CIDAClassifier(
            None, capacity="mlp", coordinates=mode, encoder_hidden=(16,), steps=150,
            learning_rate=5e-3, random_state=0,
        )  # fmt: skip
        model.fit(**data)
        far = data["domain_index"] > 1.5
        where = {"domain_index": data["domain_index"][far]} if mode == "windows" else {}
        right[mode] = (model.predict(data["X"][far], **where) == truth[far]).mean()
    assert right["windows"] > 0.9
    assert right["raw"] < 0.75


@pytest.mark.parametrize("space", [None, Periodic(3)], ids=repr)
def test_a_model_in_windows_is_saved_and_loaded(kind, tmp_path, space):
    data, _ = drifting(400)
    settings = {"proximity": 0.5, "weight_decay": 0.1, "predictor_hidden": ()}
    model = kind(coordinates="windows", space=space, **settings, **SMALL).fit(**data)
    assert isinstance(model.game_.encoder, TabularEncoder)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    where = {"X": data["X"], "domain_index": data["domain_index"]}
    for method in ("predict", "transform"):
        assert np.array_equal(getattr(again, method)(**where), getattr(model, method)(**where))
    assert np.array_equal(again.fit(**data).transform(**where), model.transform(**where))


def test_a_model_in_windows_needs_the_index_to_predict():
    data, _ = drifting(300)
    model = CIDAClassifier(coordinates="windows", **SMALL).fit(**data)
    with pytest.raises(ValueError, match=r"domain_index is missing.*coordinates='windows'"):
        model.predict(data["X"])


def test_several_index_numbers_can_have_windows(kind):
    data, _ = drifting(400)
    u = np.stack([data["domain_index"], np.cos(data["domain_index"])], axis=1)
    model = kind(coordinates="windows", **SMALL).fit(data["X"], data["y"], u)
    assert model.game_.encoder.windows.places.shape[1] == 2
    assert np.isfinite(model.transform(data["X"], domain_index=u)).all()


# --- bad values -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("proximity", -0.1, "proximity must be a number of at least 0, got -0.1"),
        ("proximity", 1.5, "proximity must be at most 1.0, got 1.5"),
        ("proximity", np.nan, "proximity must be a number of at least 0, got nan"),
        ("proximity", "near", "proximity must be a number of at least 0, got 'near'"),
        ("weight_decay", -1, "weight_decay must be a number of at least 0, got -1"),
        ("weight_decay", np.nan, "weight_decay must be a number of at least 0, got nan"),
        ("weight_decay", "much", "weight_decay must be a number of at least 0, got 'much'"),
        ("predictor_hidden", (0,), "predictor_hidden must hold layer widths of at least 1, got"),
        ("capacity", "deep", "capacity must be 'auto', 'linear' or 'mlp', got 'deep'"),
        ("encoder_hidden", (), r"encoder_hidden must hold layer widths of at least 1, got \(\)"),
        ("coordinates", "window", "coordinates must be 'auto', 'raw', 'windows', .* got 'window'"),
    ],
)
def test_a_value_that_cannot_work_is_refused_by_name(kind, data, name, value, words):
    with pytest.raises(ValueError, match=words):
        kind(**{**SMALL, name: value}).fit(**data)


def test_windows_belong_to_the_built_in_encoder(kind, data):
    words = "coordinates is 'windows'.*encoder is your own; put cida.coordinates.WindowsLayer"
    with pytest.raises(ValueError, match=words):
        kind(encoder=nn.Linear(2, 3), coordinates="windows", **SMALL).fit(**data)
