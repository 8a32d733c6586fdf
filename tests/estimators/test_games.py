"""Each game behind the estimators: what plays, and in which stages."""

import numpy as np
import pytest
import torch
from torch import nn

from cida import CIDAClassifier, CIDARegressor, Histogram, load
from cida.games import GAMES, Adversarial, SourceOnly

SMALL = {
    "capacity": "mlp", "steps": 20, "encoder_hidden": (8,), "encoding_width": 4, "random_state": 0,
}  # fmt: skip


@pytest.fixture
def rows(data):
    """What a fitted model predicts from."""
    return {name: data[name] for name in ("X", "domain_index")}


def layers(module, kind=nn.Linear):
    return [m for m in module.modules() if isinstance(m, kind)]


@pytest.mark.parametrize("game", GAMES)
def test_every_game_fits_a_small_world_and_predicts_its_classes(data, rows, game):
    model = CIDAClassifier(game=game, **SMALL).fit(**data)
    assert type(model.game_) is GAMES[game]
    chances = model.predict_proba(**rows)
    assert chances.sum(1) == pytest.approx(1)
    assert np.array_equal(model.predict(**rows), model.classes_[chances.argmax(1)])
    assert all("prediction" in event.losses for event in model.history_)


@pytest.mark.parametrize("game", sorted(set(GAMES) - {"mdd"}))
def test_every_game_but_mdd_fits_numbers(data, rows, game):
    model = CIDARegressor(game=game, **SMALL).fit(**data)
    assert type(model.game_) is GAMES[game]
    assert np.isfinite(model.predict(**rows)).all()


@pytest.mark.parametrize("game", GAMES)
def test_every_game_fits_with_batch_normalisation(data, rows, game):
    model = CIDAClassifier(game=game, batch_norm=True, **SMALL).fit(**data)
    assert np.isfinite(model.predict_proba(**rows)).all()


@pytest.mark.parametrize("game", GAMES)
def test_the_same_random_state_gives_the_same_predictions_in_every_game(data, rows, game):
    first, again = (CIDAClassifier(game=game, **SMALL).fit(**data) for _ in range(2))
    assert np.array_equal(first.predict_proba(**rows), again.predict_proba(**rows))


def test_a_class_plays_as_its_name_does(data, rows):
    named, given = (CIDAClassifier(game=g, **SMALL).fit(**data) for g in ("mdd", GAMES["mdd"]))
    assert np.array_equal(named.transform(**rows), given.transform(**rows))


def test_a_game_of_ones_own_plays(data, rows):
    class Mine(Adversarial):
        pass

    model = CIDAClassifier(game=Mine, **SMALL).fit(**data)
    assert type(model.game_) is Mine
    given = CIDAClassifier(**SMALL).fit(**data)
    assert np.array_equal(model.transform(**rows), given.transform(**rows))


@pytest.mark.parametrize("game", GAMES)
def test_without_a_discriminator_every_game_is_source_only(data, rows, game):
    model = CIDAClassifier(None, game=game, **SMALL).fit(**data)
    assert type(model.game_) is SourceOnly
    assert np.array_equal(
        model.transform(**rows), CIDAClassifier(None, **SMALL).fit(**data).transform(**rows)
    )


def test_predictor_hidden_shapes_the_predictor(data):
    model = CIDAClassifier(predictor_hidden=(6, 5), **SMALL).fit(**data)
    assert [m.out_features for m in layers(model.game_.predictor)] == [6, 5, 2]


def test_batch_normalisation_is_in_predictor_and_discriminator_and_not_in_the_encoder(data):
    head = Histogram(hidden=(7, 6))
    model = CIDAClassifier(head, batch_norm=True, predictor_hidden=(5,), **SMALL).fit(**data)
    norms = {
        name: [m.num_features for m in layers(getattr(model.game_, name), nn.BatchNorm1d)]
        for name in ("encoder", "predictor", "discriminator")
    }
    assert norms == {"encoder": [], "predictor": [5], "discriminator": [7, 6]}
    assert head.body is None


def test_a_prediction_with_batch_normalisation_does_not_depend_on_the_other_rows(data, rows):
    model = CIDAClassifier(batch_norm=True, **SMALL).fit(**data)
    pairs = zip(data["X"][:5], data["domain_index"], strict=False)
    alone = np.concatenate([model.predict_proba(x[None], domain_index=[u]) for x, u in pairs])
    assert np.array_equal(alone, model.predict_proba(**rows)[:5])


def stages_of(model):
    return sorted({event.active_share for event in model.history_})


@pytest.mark.parametrize("stages", [1, 4])
def test_the_range_widens_in_as_many_stages_as_asked_for(data, stages):
    # Two bins of six are the source, 0.2 apart: four stages add one bin each.
    model = CIDAClassifier(curriculum=1.0, curriculum_stages=stages, **SMALL).fit(**data)
    assert stages_of(model) == pytest.approx([3 / 6, 4 / 6, 5 / 6, 1] if stages == 4 else [1])


def test_cua_goes_from_near_to_far_without_being_asked_and_others_do_not(data):
    model = CIDAClassifier(game="cua", curriculum_stages=5, **SMALL).fit(**data)
    assert stages_of(model) == pytest.approx([2 / 6, 3 / 6, 4 / 6, 5 / 6, 1])
    u = torch.from_numpy(data["domain_index"])
    assert torch.equal(model.game_.memory.known, u < 0.9)  # all but the last bin
    for game in set(GAMES) - {"cua"}:
        assert stages_of(CIDAClassifier(game=game, **SMALL).fit(**data)) == [1.0]


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("batch_norm", [False, True])
def test_every_game_comes_back(data, rows, tmp_path, game, batch_norm):
    settings = {
        "game": game,
        "batch_norm": batch_norm,
        "predictor_hidden": (6, 5),
        "curriculum_stages": 3,
    }
    model = CIDAClassifier(**SMALL, **settings).fit(**data)
    model.save(tmp_path / "model.cida")
    again = load(tmp_path / "model.cida")
    assert again.get_params() == model.get_params()
    for method in ("predict_proba", "transform"):
        assert np.array_equal(getattr(again, method)(**rows), getattr(model, method)(**rows))
    encoding = again.fit(**data).transform(**rows)
    assert np.array_equal(encoding, model.transform(**rows))


def test_the_class_of_a_game_comes_back_as_its_name(data, rows, tmp_path):
    model = CIDAClassifier(**SMALL, game=GAMES["mdd"]).fit(**data)
    model.save(tmp_path / "model.cida")
    again = load(tmp_path / "model.cida")
    assert again.game == "mdd"
    assert np.array_equal(again.predict_proba(**rows), model.predict_proba(**rows))
