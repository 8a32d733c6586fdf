"""What fitting depends on, and what it leaves alone."""

import copy
import pickle
import re

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from torch import nn

from cida import (
    L1,
    L2,
    CIDAClassifier,
    CIDARegressor,
    CidaWarning,
    Gaussian,
    Histogram,
    Mixture,
    Periodic,
)
from cida.training import Event

SMALL = {"steps": 5, "encoder_hidden": (8,), "encoding_width": 4, "random_state": 0}


def weights(model):
    """Every weight and buffer of all players, as bytes."""
    return {name: t.numpy().tobytes() for name, t in model.game_.state_dict().items()}


def at(data):
    """What a fitted model predicts from."""
    return {name: data[name] for name in ("X", "domain_index")}


# --- randomness -------------------------------------------------------------------------------


@pytest.mark.parametrize("indexed", [True, False])
def test_the_same_random_state_gives_the_same_bytes_and_another_gives_others(kind, world, indexed):
    arguments = {"domain_index": world.u, "source": world.source} if indexed else {}
    first, again, other = (
        kind(**{**SMALL, "random_state": seed}).fit(world.x, world.y, **arguments)
        for seed in (3, 3, 4)
    )
    assert weights(first) == weights(again)
    assert weights(first) != weights(other)


def test_a_generator_as_random_state_is_drawn_from(data):
    first, again = (
        CIDAClassifier(**{**SMALL, "random_state": np.random.RandomState(3)}).fit(**data)
        for _ in range(2)
    )
    assert weights(first) == weights(again)
    generator = np.random.RandomState(3)
    one = CIDAClassifier(**{**SMALL, "random_state": generator}).fit(**data)
    two = CIDAClassifier(**{**SMALL, "random_state": generator}).fit(**data)
    assert weights(one) != weights(two)


def test_fitting_leaves_the_global_random_states_and_threads_alone(kind, data):
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), torch.get_num_threads()  # noqa: NPY002
    model = kind(**SMALL).fit(**data)
    model.predict(**at(data))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    assert torch.get_num_threads() == before[2]


def test_the_global_random_state_does_not_change_the_fit(kind, data):
    torch.manual_seed(1)
    first = kind(**SMALL).fit(**data)
    torch.manual_seed(2)
    assert weights(kind(**SMALL).fit(**data)) == weights(first)


def test_a_fit_that_breaks_puts_the_random_state_back(data):
    def stop(event):
        raise RuntimeError("stop")

    before = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="stop"):
        CIDAClassifier(**SMALL, callbacks=[stop]).fit(**data)
    assert torch.equal(torch.get_rng_state(), before)


# --- scaling ----------------------------------------------------------------------------------


@pytest.mark.parametrize("coordinates", ["auto", "raw"])
def test_standardising_takes_the_units_of_x_away(kind, data, coordinates):
    options = {**SMALL, "coordinates": coordinates}
    model = kind(**options).fit(**data)
    moved = {**data, "X": data["X"] * [1000, 0.01] + [-300, 7]}
    other = kind(**options).fit(**moved)
    assert np.allclose(model.transform(**at(data)), other.transform(**at(moved)), atol=1e-4)


def test_without_standardising_the_units_of_x_count(kind, data):
    options = {**SMALL, "standardize": False, "coordinates": "raw"}
    raw = kind(**options).fit(**data)
    moved = kind(**options).fit(**{**data, "X": data["X"] * 100})
    assert not np.allclose(raw.transform(data["X"]), moved.transform(data["X"] * 100), atol=0.1)


def test_a_column_that_never_changes_is_harmless(kind, data):
    data["X"] = np.column_stack([data["X"], np.full(72, 5.0)])
    assert np.isfinite(kind(**SMALL).fit(**data).transform(**at(data))).all()


def test_the_units_of_y_come_back_out_of_the_regressor(data):
    model = CIDARegressor(**SMALL).fit(**data)
    other = CIDARegressor(**SMALL).fit(**{**data, "y": data["y"] * 4096 - 77})
    expected = model.predict(**at(data)) * 4096 - 77
    assert np.allclose(other.predict(**at(data)), expected, rtol=1e-4, atol=0.5)


@pytest.mark.parametrize("coordinates", ["auto", "raw"])
def test_the_units_of_u_do_not_change_the_game(kind, data, coordinates):
    options = {**SMALL, "coordinates": coordinates}
    model = kind(**options).fit(**data)
    moved = {**data, "domain_index": data["domain_index"] * 365.25 + 1900}
    other = kind(**options).fit(**moved)
    assert np.allclose(model.transform(**at(data)), other.transform(**at(moved)), atol=1e-3)


# --- weights belong to the prediction loss alone ----------------------------------------------


def test_a_whole_weight_is_a_repeated_row_in_a_plain_fit(kind, world):
    x, y = world.x[:20], world.y[:20]
    times = np.arange(20) % 3
    weighted = kind(**SMALL).fit(x, y, sample_weight=times)
    repeated = kind(**SMALL).fit(np.repeat(x, times, axis=0), np.repeat(y, times))
    assert weights(weighted) == weights(repeated)


def test_a_class_weight_is_a_sample_weight(data, world):
    by_class = CIDAClassifier(**SMALL, class_weight={0: 1, 1: 4}).fit(**data)
    by_row = CIDAClassifier(**SMALL).fit(**data, sample_weight=np.where(world.y, 4.0, 1.0))
    assert weights(by_class) == weights(by_row)
    assert weights(by_class) != weights(CIDAClassifier(**SMALL).fit(**data))


def test_balanced_class_weights_count_labelled_rows_alone(data, world):
    count = np.bincount(world.y[world.source])
    by_hand = {c: world.source.sum() / (2 * count[c]) for c in (0, 1)}
    balanced = CIDAClassifier(**SMALL, class_weight="balanced").fit(**data)
    assert weights(balanced) == weights(CIDAClassifier(**SMALL, class_weight=by_hand).fit(**data))


@pytest.mark.parametrize("discriminator", ["l2", "gaussian", "histogram"])
def test_weights_do_not_move_the_ceiling(kind, data, world, discriminator):
    plain = kind(**SMALL, discriminator=discriminator).fit(**data)
    weight = np.where(world.u > 0.5, 50.0, 1.0) + world.y
    heavy = kind(**SMALL, discriminator=discriminator).fit(**data, sample_weight=weight)
    assert torch.equal(plain.game_.discriminator.blind, heavy.game_.discriminator.blind)
    ceilings = [[e.ceilings for e in model.history_] for model in (plain, heavy)]
    assert ceilings[0] == ceilings[1]
    assert weights(plain) != weights(heavy)


def test_the_scale_of_the_weights_does_not_matter(kind, data):
    weight = np.arange(1.0, 73.0)
    one = kind(**SMALL).fit(**data, sample_weight=weight)
    assert weights(one) == weights(kind(**SMALL).fit(**data, sample_weight=weight * 1024))


def test_labels_of_weight_zero_teach_nothing_but_their_rows_stay_source(data, world):
    weight = np.where(world.u < 0.1, 1.0, 0.0)
    model = CIDAClassifier(**SMALL).fit(**data, sample_weight=weight)
    flipped = np.where(weight > 0, data["y"], 1 - data["y"])
    other = CIDAClassifier(**SMALL).fit(**{**data, "y": flipped}, sample_weight=weight)
    assert weights(model) == weights(other)
    with pytest.warns(CidaWarning, match="no unlabelled row"):
        model.fit(world.x, world.y, domain_index=world.u, sample_weight=weight)


def test_a_default_dtype_of_float64_changes_nothing(kind, data):
    before = weights(kind(**SMALL).fit(**data))
    torch.set_default_dtype(torch.float64)
    try:
        assert weights(kind(**SMALL).fit(**data)) == before
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_discriminator_shows_its_settings_in_the_model():
    assert "Histogram(bins=36" in repr(CIDAClassifier(discriminator=Histogram(bins=36)))


# --- discriminators ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "instance"),
    [
        ("l2", L2()),
        ("l1", L1()),
        ("gaussian", Gaussian()),
        ("mixture", Mixture()),
        ("histogram", Histogram()),
    ],
)
def test_a_short_name_is_the_instance_with_its_defaults(kind, data, name, instance):
    named = kind(**SMALL, discriminator=name).fit(**data)
    given = kind(**SMALL, discriminator=instance).fit(**data)
    assert type(named.game_.discriminator) is type(instance)
    assert weights(named) == weights(given)
    assert given.discriminator is instance
    assert instance.body is None  # the parameter stays unbuilt
    assert instance.space is None


def test_histogram_is_the_default(data):
    assert type(CIDAClassifier(**SMALL).fit(**data).game_.discriminator) is Histogram


def test_the_settings_of_an_instance_are_used(data):
    model = CIDAClassifier(**SMALL, discriminator=Histogram(bins=7)).fit(**data)
    assert model.game_.discriminator.head.out_features == 7


def test_source_only_never_looks_at_the_target(kind, data, world):
    options = {**SMALL, "discriminator": None, "standardize": False, "coordinates": "raw"}
    model = kind(**options).fit(**data)
    moved = {
        **data,
        "X": np.where(world.source[:, None], world.x, 1e3 * world.x[::-1]),
        "domain_index": np.where(world.source, world.u, world.u**3 + 5),
    }
    assert weights(kind(**options).fit(**moved)) == weights(model)


def test_the_adversary_does_look_at_the_target(kind, data, world):
    options = {**SMALL, "standardize": False, "ceiling": False, "coordinates": "raw"}
    moved = {**data, "X": np.where(world.source[:, None], world.x, world.x[::-1])}
    model, other = kind(**options).fit(**data), kind(**options).fit(**moved)
    assert not np.array_equal(model.transform(world.x), other.transform(world.x))


# --- modules of the user's own ----------------------------------------------------------------


class Seen(nn.Module):
    """E(x) or E(x, u), with batch normalisation; remembers the shapes that it was called with."""

    def __init__(self, inputs, outputs=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs))

    def forward(self, x, index=None):
        return self.body(x if index is None else torch.cat([x, index], dim=1))


def test_an_encoder_of_x_and_u_sees_the_embedding(kind, data):
    data["domain_index"] = data["domain_index"] * 300
    options = {**SMALL, "encoder": Seen(4), "coordinates": "learned", "space": Periodic(360)}
    model = kind(**options).fit(**data)
    here = model.transform(data["X"], domain_index=data["domain_index"])
    assert here.shape == (72, 3)
    assert not np.allclose(here, model.transform(data["X"], domain_index=np.zeros(72)))
    assert model.get_feature_names_out().shape == (3,)


def test_an_encoder_of_x_alone_needs_no_index(kind, data):
    model = kind(**SMALL, encoder=Seen(2)).fit(**data)
    assert np.array_equal(
        model.predict(data["X"]), model.predict(data["X"], domain_index=data["domain_index"])
    )


@pytest.mark.parametrize("indexed", [True, False])
def test_modules_that_are_passed_are_not_touched(kind, data, world, indexed):
    outputs = 2 if kind is CIDAClassifier else 1
    modules = {
        "encoder": Seen(2).train(),
        "predictor": nn.Linear(3, outputs).eval(),
        "discriminator": Gaussian(body=nn.Linear(3, 6)),
    }
    before = {name: copy.deepcopy(module.state_dict()) for name, module in modules.items()}
    model = kind(**SMALL, **modules)
    if indexed:
        model.fit(**data)
    else:
        model.fit(world.x, world.y)
    for name, module in modules.items():
        assert getattr(model, name) is module
        assert module.state_dict().keys() == before[name].keys()
        assert all(torch.equal(before[name][k], v) for k, v in module.state_dict().items())
    assert modules["encoder"].training
    assert not modules["predictor"].training
    assert not torch.equal(model.game_.predictor.weight, modules["predictor"].weight)


def test_images_go_through_a_convolutional_encoder(kind, world):
    images = np.random.default_rng(0).normal(size=(72, 1, 8, 8)).astype(np.float32)
    encoder = nn.Sequential(nn.Conv2d(1, 2, 3, stride=2), nn.ReLU(), nn.Flatten())
    model = kind(**SMALL, encoder=encoder)
    model.fit(images, world.training_labels, domain_index=world.u)
    assert model.transform(images).shape == (72, 18)
    assert model.predict(torch.from_numpy(images)).shape == (72,)
    # One mean and one scale for the whole image: pixels keep their contrast to each other.
    brighter = kind(**SMALL, encoder=encoder)
    brighter.fit(images * 50 + 9, world.training_labels, domain_index=world.u)
    assert np.allclose(brighter.transform(images * 50 + 9), model.transform(images), atol=1e-3)


# --- pickle and clone -------------------------------------------------------------------------


def test_a_fitted_model_pickles(kind, data):
    model = kind(**SMALL).fit(**data)
    again = pickle.loads(pickle.dumps(model))
    assert weights(again) == weights(model)
    assert np.array_equal(again.predict(**at(data)), model.predict(**at(data)))


def test_a_clone_has_the_parameters_and_nothing_else(kind, data):
    options = {"discriminator": Histogram(bins=9), "space": Periodic(2), "encoder": Seen(2)}
    model = kind(**SMALL, **options).fit(**data)
    twin = clone(model)
    with pytest.raises(NotFittedError):
        check_is_fitted(twin)
    assert twin.discriminator.bins == 9
    assert twin.space == Periodic(2)
    assert weights(twin.fit(**data)) == weights(model)


def test_parameters_can_be_set_by_name(kind, data):
    model = kind().set_params(**SMALL, lambda_d=0.5)
    assert model.get_params()["lambda_d"] == 0.5
    assert weights(model.fit(**data)) == weights(kind(**SMALL, lambda_d=0.5).fit(**data))


# --- events and the progress bar --------------------------------------------------------------


def test_callbacks_receive_every_event(kind, data):
    events = []
    model = kind(**SMALL, callbacks=[events.append]).fit(**data)
    assert [e.step for e in events] == [1, 2, 3, 4, 5]
    assert all(isinstance(e, Event) and e.steps == 5 for e in events)
    assert all(set(e.losses) == {"prediction", "discriminator"} for e in events)
    assert all(set(e.ceilings) == {"discriminator"} for e in events)
    assert events == model.history_


def test_a_plain_fit_has_no_ceiling(kind, world):
    model = kind(**SMALL).fit(world.x, world.y)
    assert all(set(e.losses) == {"prediction"} and not e.ceilings for e in model.history_)


def test_watching_does_not_change_the_fit(kind, data, capsys):
    silent = kind(**SMALL).fit(**data)
    assert capsys.readouterr() == ("", "")
    watched = kind(**SMALL, verbose=True, callbacks=[lambda event: None]).fit(**data)
    assert weights(watched) == weights(silent)


def test_verbose_shows_the_loss_against_its_ceiling_on_standard_error(kind, data, capsys):
    model = kind(**SMALL, verbose=True).fit(**data)
    out, err = capsys.readouterr()
    assert out == ""
    shown = re.search(r"discriminator (\d+\.\d{3}) / (\d+\.\d{3})", " ".join(err.split()))
    last = model.history_[-1]
    assert shown is not None
    assert float(shown[1]) == pytest.approx(last.losses["discriminator"], abs=6e-4)
    assert float(shown[2]) == pytest.approx(last.ceilings["discriminator"], abs=6e-4)
    assert kind.__name__ in err
    assert "5/5" in err
