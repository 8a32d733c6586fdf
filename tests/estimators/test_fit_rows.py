"""`fit_rows`: training on rows as they are dealt, without scaling and without reading labels."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from cida import CIDAClassifier, CIDARegressor, Line, Periodic, load
from cida.data import IndexedDataset
from cida.experiments.rotating_mnist.rotating_dataset import (
    Digits,
    make_fixed_angle_dataset,
    make_fresh_angle_dataset,
)
from cida.networks import Convolution, ImageEncoder, PlainEncoder, RotationTransformer
from cida.training import seeded

SMALL = {"steps": 8, "encoder_hidden": (8,), "encoding_width": 4, "random_state": 0}
SETTINGS = {
    "as it comes": {},
    "without the index": {"coordinates": "raw"},
    "with a branch": {"coordinates": "learned"},
    "source alone": {"discriminator": None},
    "a curriculum": {"curriculum": 0.5, "curriculum_stages": 3},
    "another game": {"game": "cua"},
    "an encoder of one's own": {"encoder": nn.Linear(2, 3), "coordinates": "raw"},
}


def rows_of(world, y=None, **changes):
    """The world as rows: float32 inputs, labels as numbers to train on."""
    parts = {
        "x": torch.from_numpy(world.x).float(),
        "y": torch.from_numpy(world.y) if y is None else y,
        "u": torch.from_numpy(world.u),
        "labelled": torch.from_numpy(world.source),
    }
    return IndexedDataset(**{**parts, **changes})


def chances(model, world):
    return model.predict_proba(world.x.astype(np.float32), domain_index=world.u)


# --- beside fit -------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_plain_rows_give_the_model_that_fit_gives_without_scaling(world, settings):
    rows = CIDAClassifier(**SMALL, **settings).fit_dataset(rows_of(world))
    arrays = CIDAClassifier(**SMALL, **settings, standardize=False)
    arrays.fit(world.x.astype(np.float32), world.training_labels, domain_index=world.u)
    np.testing.assert_array_equal(chances(rows, world), chances(arrays, world))
    for mine, other in zip(rows.history_, arrays.history_, strict=True):
        assert mine.losses == other.losses
    assert rows.n_features_in_ == arrays.n_features_in_ == 2


def test_a_regressor_trains_on_the_numbers_as_they_are(world):
    """Beside `fit`, whose labels were put on that scale by hand: mean 0 and deviation 1."""
    known = world.x[:, 0][world.source]
    y = (world.x[:, 0] - known.mean()) / known.std()
    rows = rows_of(world, torch.from_numpy(y).float()[:, None])
    model = CIDARegressor(**SMALL).fit_dataset(rows)
    arrays = CIDARegressor(**SMALL, standardize=False)
    arrays.fit(world.x.astype(np.float32), np.where(world.source, y, np.nan), domain_index=world.u)
    given = {"X": world.x.astype(np.float32), "domain_index": world.u}
    np.testing.assert_allclose(model.predict(**given), arrays.predict(**given), atol=1e-5)
    # No shift and no factor afterwards: what the predictor says is the prediction.
    with torch.no_grad():
        said = model.game_.predict(rows.x, rows.u)[:, 0].numpy()
    np.testing.assert_allclose(model.predict(**given), said, atol=1e-6)


def test_weights_of_rows_count_in_the_prediction_alone(world):
    half = torch.arange(72) % 2 == 0
    weight = torch.where(half, 2.0, 0.0)
    weighted = CIDAClassifier(**SMALL).fit_dataset(rows_of(world, weight=weight))
    flipped = torch.from_numpy(np.where(half, world.y, 1 - world.y))
    other = CIDAClassifier(**SMALL).fit_dataset(rows_of(world, flipped, weight=weight))
    np.testing.assert_array_equal(chances(weighted, world), chances(other, world))


def test_inputs_are_not_scaled(world):
    model = CIDAClassifier(**SMALL, coordinates="raw")
    near = model.fit_dataset(rows_of(world)).transform(world.x)
    by_hand = model.game_.encoder(torch.from_numpy(world.x).float()).detach().numpy()
    np.testing.assert_allclose(near, by_hand, atol=1e-6)
    moved = rows_of(world, x=torch.from_numpy(world.x).float() + 100)
    assert not np.allclose(model.fit_dataset(moved).transform(world.x + 100), near, atol=1.0)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_target_label_never_matters(world, settings):
    found = []
    for poison in (world.y, 1 - world.y, np.full_like(world.y, 77)):
        y = torch.from_numpy(np.where(world.source, world.y, poison))
        model = CIDAClassifier(**SMALL, **settings).fit_dataset(rows_of(world, y))
        assert model.classes_.tolist() == [0, 1]
        found.append(chances(model, world))
    assert all(np.array_equal(found[0], other) for other in found[1:])


def test_a_target_number_never_matters(world):
    found = []
    for poison in (0.0, 1e6, np.nan):
        y = np.where(world.source, world.x[:, 0], poison)[:, None].astype(np.float32)
        model = CIDARegressor(**SMALL).fit_dataset(rows_of(world, torch.from_numpy(y)))
        found.append(model.predict(world.x, domain_index=world.u))
    assert all(np.array_equal(found[0], other) for other in found[1:])
    assert np.isfinite(found[0]).all()


def test_the_same_seed_gives_the_same_model_and_another_does_not(world):
    models = [
        CIDAClassifier(**{**SMALL, "random_state": seed}).fit_dataset(rows_of(world))
        for seed in (0, 0, 1)
    ]
    first, second, third = (chances(model, world) for model in models)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, third)


# --- images -----------------------------------------------------------------------------------


def some_digits(count=24):
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (count, 1, 8, 8), generator=generator, dtype=torch.uint8)
    return Digits(images, torch.arange(count) % 3)


def some_encoder(index_width=2):
    with seeded(0):
        transformer = RotationTransformer(index_width, hidden=(8,), one_angle=index_width == 1)
        return ImageEncoder(8, (Convolution(4, pool=2), Convolution(6, pool=2)), 5, transformer)


IMAGES = {"steps": 6, "batch_size": 32, "coordinates": "learned", "random_state": 0}


@pytest.fixture(scope="module", params=[Periodic(360), Line()], ids=["circle", "line"])
def turned(request):
    """A model of digits that are turned as they are dealt, and rows to predict."""
    space = request.param
    encoder = some_encoder(space.embedding_width)
    model = CIDAClassifier(space=space, encoder=encoder, **IMAGES)
    model.fit_dataset(make_fresh_angle_dataset(some_digits(), 0))
    scored = make_fixed_angle_dataset(some_digits(), 1)
    batch = scored[torch.arange(len(scored))]
    return model, encoder, batch.x.numpy(), batch.u.numpy()


def test_images_turned_on_the_fly_are_trained_on_and_predicted(turned):
    model, encoder, x, u = turned
    assert set(model.predict(x, domain_index=u)) <= {0, 1, 2}
    assert model.predict_proba(x, domain_index=u).sum(1) == pytest.approx(np.ones(len(x)))
    assert model.transform(x, domain_index=u).shape == (len(x), 5)
    assert model.history_[-1].step == 6
    # A copy was trained, all of it; the one that was given is as it was.
    mine, other = model.game_.encoder.state_dict(), some_encoder(model.space_.embedding_width)
    for name, parameter in other.named_parameters():
        assert torch.equal(encoder.state_dict()[name], parameter), name
        assert not torch.equal(mine[name], parameter), name


def test_predictions_are_those_of_the_game_itself(turned):
    model, _, x, u = turned
    with torch.no_grad():
        said = model.game_.predict(torch.from_numpy(x), torch.from_numpy(u)).softmax(1)
    np.testing.assert_allclose(model.predict_proba(x, domain_index=u), said, atol=1e-5)


def test_images_of_another_shape_are_refused(turned):
    model, _, x, u = turned
    with pytest.raises(ValueError, match=r"rows of shape \(1, 8, 7\).*\(1, 8, 8\)"):
        model.predict(x[:, :, :, :7], domain_index=u)


def test_it_is_saved_and_read_back_with_its_encoder(turned, tmp_path):
    model, _, x, u = turned
    model.save(tmp_path / "model.safetensors")
    encoder = some_encoder(model.space_.embedding_width)
    for read in (
        CIDAClassifier.load(tmp_path / "model.safetensors", encoder=encoder),
        load(tmp_path / "model.safetensors", encoder=encoder),
        load(tmp_path / "model.safetensors"),  # one of ours: the file says how to make it
    ):
        np.testing.assert_array_equal(
            read.predict_proba(x, domain_index=u), model.predict_proba(x, domain_index=u)
        )
        assert read.classes_.tolist() == [0, 1, 2]


def test_a_model_of_plain_rows_is_saved_and_read_back(world, tmp_path, kind):
    y = None if kind is CIDAClassifier else torch.from_numpy(world.x[:, :1]).float()
    model = kind(**SMALL).fit_dataset(rows_of(world, y))
    model.save(tmp_path / "model.safetensors")
    given = {"X": world.x, "domain_index": world.u}
    np.testing.assert_array_equal(
        load(tmp_path / "model.safetensors").predict(**given), model.predict(**given)
    )


def test_the_same_seed_turns_the_same_digits_the_same_way():
    scored = make_fixed_angle_dataset(some_digits(), 1)
    batch = scored[torch.arange(len(scored))]
    found = []
    for disturbance in (0, 1):
        torch.manual_seed(disturbance)  # what the user draws elsewhere does not matter
        model = CIDAClassifier(space=Periodic(360), encoder=some_encoder(), **IMAGES)
        model.fit_dataset(make_fresh_angle_dataset(some_digits(), 0))
        found.append(model.predict_proba(batch.x.numpy(), domain_index=batch.u.numpy()))
    np.testing.assert_array_equal(*found)


def test_training_leaves_the_callers_random_state_alone():
    rows = make_fresh_angle_dataset(some_digits(), 0)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    CIDAClassifier(space=Periodic(360), encoder=some_encoder(), **IMAGES).fit_dataset(rows)
    assert torch.equal(torch.get_rng_state(), before)


# --- what does not fit ------------------------------------------------------------------------


def test_an_encoder_that_does_not_fit_the_rows_is_told_in_a_sentence(world):
    model = CIDAClassifier(**SMALL, encoder=PlainEncoder(3, (4,), 2), coordinates="raw")
    with pytest.raises(ValueError, match=r"encoder cannot take .* rows of shape \(2, 2\)"):
        model.fit_dataset(rows_of(world))
    wide = CIDAClassifier(space=Line(), encoder=some_encoder(2), **IMAGES)
    with pytest.raises(ValueError, match=r"encoder cannot take .* rows of shape \(2, 1, 8, 8\)"):
        wide.fit_dataset(make_fresh_angle_dataset(some_digits(), 0))


def test_an_encoder_that_gives_no_vectors_is_told_in_a_sentence():
    model = CIDAClassifier(encoder=nn.Identity(), **{**IMAGES, "coordinates": "raw"})
    with pytest.raises(ValueError, match="must give one vector for each row"):
        model.fit_dataset(make_fresh_angle_dataset(some_digits(), 0))


def test_a_batch_larger_than_the_rows_is_refused(world):
    with pytest.raises(ValueError, match="batch_size is 73"):
        CIDAClassifier(**SMALL, batch_size=73).fit_dataset(rows_of(world))


@pytest.mark.parametrize(
    "bad",
    [
        {"encoder": PlainEncoder(3, (4,), 2), "coordinates": "raw"},
        {"steps": 0},
        {"game": "magic"},
        {"discriminator": "magic"},
        {"predictor": nn.Linear(4, 9)},
    ],
)
def test_a_fit_that_fails_leaves_the_model_as_it_was(world, bad):
    model = CIDAClassifier(**SMALL).fit_dataset(rows_of(world))
    before, known = chances(model, world), dict(vars(model))
    model.set_params(**bad)
    with pytest.raises(ValueError, match=next(iter(bad))):
        model.fit_dataset(rows_of(world))
    model.set_params(**{name: known[name] for name in bad})
    assert vars(model).keys() == known.keys()
    assert model.state_ is known["state_"]
    np.testing.assert_array_equal(chances(model, world), before)


def test_a_first_fit_that_fails_leaves_no_fitted_model(world):
    model = CIDAClassifier(**{**SMALL, "steps": 0})
    before = dict(vars(model))
    with pytest.raises(ValueError, match="steps"):
        model.fit_dataset(rows_of(world))
    assert vars(model) == before


# --- known gaps: each says what should be ------------------------------------------------------


def test_numbers_in_one_dimension_are_refused(world):
    y = torch.from_numpy(world.x[:, 0]).float()
    with pytest.raises(ValueError, match="one column of floating-point numbers"):
        CIDARegressor(**SMALL).fit_dataset(rows_of(world, y))


@pytest.mark.filterwarnings("error:X does not have valid feature names")
def test_column_names_of_an_earlier_fit_are_forgotten(world):
    table = pd.DataFrame(world.x, columns=["across", "up"])
    model = CIDAClassifier(**SMALL)
    model.fit(table, world.training_labels, domain_index=world.u).fit_dataset(rows_of(world))
    assert not hasattr(model, "feature_names_in_")
    model.predict(world.x, domain_index=world.u)


def test_rows_without_a_label_are_refused_in_a_sentence(world):
    with pytest.raises(ValueError, match="labelled"):
        CIDAClassifier(**SMALL).fit_dataset(
            rows_of(world, labelled=torch.zeros(72, dtype=torch.bool))
        )


def test_labels_of_a_single_class_are_refused_as_fit_refuses_them(world):
    with pytest.raises(ValueError, match="at least two classes"):
        CIDAClassifier(**SMALL).fit_dataset(rows_of(world, torch.zeros(72, dtype=torch.long)))


def test_class_weights_are_used_or_refused(world):
    rows = rows_of(world)
    plain = CIDAClassifier(**SMALL).fit_dataset(rows)
    try:
        weighted = CIDAClassifier(**SMALL, class_weight={0: 100.0, 1: 0.01}).fit_dataset(rows)
    except ValueError:
        return
    assert not np.array_equal(chances(plain, world), chances(weighted, world))
