"""How many labelled rows a round has, beside its batch of all rows."""

import numpy as np
import pytest

from cida import CIDAClassifier, CIDARegressor
from cida.games import Adversarial


class Watched(Adversarial):
    """The game as it is; keeps the sizes and the labels' state of what it is dealt."""

    dealt: list[tuple[int, int, bool]]

    def moves(self, source, pooled):
        self.dealt.append((len(source), len(pooled), bool(source.labelled.all())))
        return super().moves(source, pooled)


@pytest.fixture
def dealt(monkeypatch):
    monkeypatch.setattr(Watched, "dealt", [], raising=False)
    return Watched.dealt


def fitted(data, kind=CIDAClassifier, **settings):
    model = kind(game=Watched, steps=3, encoder_hidden=(8,), coordinates="raw", **settings)
    return model.fit(**data)


@pytest.mark.parametrize("size", [1, 7, 20, np.int64(5)])
def test_a_round_has_so_many_labelled_rows(data, dealt, size):
    fitted(data, batch_size=16, source_batch_size=size)
    assert dealt == [(size, 16, True)] * 3


def test_it_may_be_larger_than_the_batch_of_all_rows(data, dealt):
    fitted(data, batch_size=8, source_batch_size=16)
    assert dealt == [(16, 8, True)] * 3


@pytest.mark.parametrize(("batch", "half"), [(16, 8), (9, 4), (2, 1), (1, 1)])
def test_by_default_it_is_half_of_the_batch_of_all_rows(data, dealt, batch, half):
    fitted(data, capacity="mlp", batch_size=batch)
    assert dealt == [(half, batch, True)] * 3


@pytest.mark.parametrize("batch", [16, 9, 1])
def test_for_a_linear_capacity_it_is_all_of_the_batch_by_default(data, dealt, batch):
    fitted(data, capacity="linear", batch_size=batch)
    assert dealt == [(batch, batch, True)] * 3


def test_by_default_it_is_half_of_the_default_batch_too(data, dealt):
    fitted(data)  # 72 rows, fewer than 128: the batch is all of them; 24 are labelled
    assert dealt == [(24, 72, True)] * 3


def test_where_it_holds_every_labelled_row_each_is_dealt_once(data, dealt):
    fitted(data, source_batch_size=1000)
    assert dealt == [(24, 72, True)] * 3


@pytest.mark.parametrize("kind", [CIDAClassifier, CIDARegressor])
@pytest.mark.parametrize("size", [0, -3, 2.5, "8", float("nan")])
def test_anything_but_a_whole_number_of_at_least_1_is_refused(data, kind, size):
    with pytest.raises(ValueError, match="source_batch_size must be a whole number of at least 1"):
        kind(source_batch_size=size, steps=1).fit(**data)


def test_it_goes_through_a_file(data, dealt, tmp_path):
    model = CIDAClassifier(steps=1, encoder_hidden=(8,), source_batch_size=5).fit(**data)
    model.save(tmp_path / "model.safetensors")
    assert CIDAClassifier.load(tmp_path / "model.safetensors").source_batch_size == 5
