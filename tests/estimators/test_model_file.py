"""Models to files and back: the same predictions, and clear words about files that are not ours."""

import json
import os
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import nn

from cida import (
    L1,
    L2,
    CIDAClassifier,
    CIDARegressor,
    CidaWarning,
    Gaussian,
    Histogram,
    Line,
    Mixture,
    ModelFileError,
    Periodic,
    Product,
    load,
)

SMALL = {"steps": 5, "encoder_hidden": (8,), "encoding_width": 4, "random_state": 0}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.cida"


@pytest.fixture(scope="module")
def whole(world):
    """A fitted classifier."""
    model = CIDAClassifier(**SMALL, coordinates="moving-frame")
    return model.fit(world.x, world.training_labels, domain_index=world.u)


@pytest.fixture(scope="module")
def content(whole, tmp_path_factory):
    """The bytes of its file."""
    file = tmp_path_factory.mktemp("whole") / "model.cida"
    whole.save(file)
    return file.read_bytes()


def at(data):
    """What a fitted model predicts from."""
    return {name: data[name] for name in ("X", "domain_index")}


def header_of(path):
    size = int.from_bytes(path.read_bytes()[:8], "little")
    return json.loads(json.loads(path.read_bytes()[8 : 8 + size])["__metadata__"]["cida"])


def refused(path, *words, error=ModelFileError, **modules):
    """The file is refused with one sentence that names it and holds the words."""
    with pytest.raises(error) as caught:
        load(path, **modules)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    for word in words:
        assert word in message, message


# --- round trips ------------------------------------------------------------------------------


@pytest.mark.parametrize("coordinates", ["auto", "moving-frame", "windows", "raw", "learned"])
def test_a_loaded_model_predicts_the_same_bits(kind, data, path, coordinates):
    model = kind(**SMALL, coordinates=coordinates).fit(**data)
    model.save(path)
    for again in (kind.load(path), load(str(path))):
        assert type(again) is kind
        where = {"domain_index": data["domain_index"]}
        for method in ("predict", "transform"):
            got = getattr(again, method)(data["X"], **where)
            assert np.array_equal(got, getattr(model, method)(data["X"], **where))
        assert again.score(data["X"], data["y"], **where) == model.score(
            data["X"], data["y"], **where
        )
        assert again.get_params() == model.get_params()
        assert again.n_steps_ == 5
        assert again.n_features_in_ == 2
        assert again.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


def test_a_plain_model_comes_back(kind, world, path):
    model = kind(**SMALL, standardize=False).fit(world.x, world.y)
    model.save(path)
    again = kind.load(path)
    assert np.array_equal(again.predict(world.x), model.predict(world.x))
    with pytest.raises(ValueError, match="fitted without one"):
        again.predict(world.x, domain_index=world.u)


@pytest.mark.parametrize(
    "space", [None, Line(), Periodic(24), Product([Periodic(24), Line()])], ids=repr
)
def test_spaces_come_back(kind, world, path, space):
    wide = isinstance(space, Product)
    u = np.stack([world.u, world.u**2], axis=1) if wide else world.u
    model = kind(**SMALL, space=space, coordinates="learned")
    model.fit(world.x, world.training_labels, domain_index=u)
    model.save(path)
    again = load(path)
    assert again.space == space
    assert again.space_ == model.space_
    expected = model.predict(world.x, domain_index=u)
    assert np.array_equal(again.predict(world.x, domain_index=u), expected)
    with pytest.warns(CidaWarning, match="domain_index is far"):
        again.predict(world.x, domain_index=u + 7)


@pytest.mark.parametrize(
    "discriminator",
    [
        L2(),
        L1(hidden=(4,)),
        Gaussian(hidden=(4, 4)),
        Mixture(components=3),
        Histogram(bins=9, kernel=1.5, smoothing=0.1, hidden=(4,)),
        "gaussian",
        None,
    ],
    ids=lambda d: getattr(type(d), "__name__", d),
)
def test_a_loaded_model_can_be_fitted_again(data, path, discriminator):
    model = CIDAClassifier(**SMALL, discriminator=discriminator).fit(**data)
    model.save(path)
    again = load(path)
    assert type(again.discriminator) is type(discriminator)
    encoding = again.fit(**data).transform(**at(data))
    assert np.array_equal(encoding, model.transform(**at(data)))
    for setting in ("bins", "kernel", "smoothing", "components", "hidden"):
        if hasattr(discriminator, setting):
            assert getattr(again.discriminator, setting) == getattr(discriminator, setting)


@pytest.mark.parametrize(
    "options",
    [{"encoder_hidden": [np.int64(8)]}, {"discriminator": Histogram(bins=np.int64(5))}],
    ids=["encoder_hidden", "bins"],
)
def test_parameters_that_are_numpy_numbers_can_be_saved(data, path, options):
    model = CIDAClassifier(**{**SMALL, **options}).fit(**data)
    model.save(path)
    assert np.array_equal(load(path).transform(**at(data)), model.transform(**at(data)))


def test_feature_names_come_back(kind, data, path):
    data["X"] = pd.DataFrame(data["X"], columns=["east", "north"])
    model = kind(**SMALL).fit(**data)
    model.save(path)
    again = load(path)
    assert again.feature_names_in_.tolist() == ["east", "north"]
    assert np.array_equal(again.predict(**at(data)), model.predict(**at(data)))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(data["X"].rename(columns={"east": "west"}))


def test_a_file_that_is_loaded_and_saved_is_the_same_file(kind, data, path, tmp_path):
    kind(**SMALL).fit(**data).save(path)
    load(path).save(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == path.read_bytes()


def test_a_file_of_any_header_length_can_be_read(whole, path):
    """safetensors files open with the header's length, which may look like another file's mark."""
    again = pickle.loads(pickle.dumps(whole))
    first_bytes = set()
    for length in range(0, 300, 4):
        again.state_ = replace(again.state_, feature_names=("x" * (length + 1), "y"))
        again.save(path)
        first_bytes.add(path.read_bytes()[0])
        assert load(path).feature_names_in_[0] == "x" * (length + 1)
    assert 0x80 in first_bytes


def test_an_unfitted_model_is_not_saved(kind, path):
    with pytest.raises(ValueError, match="not fitted"):
        kind().save(path)
    assert not path.exists()


def test_folders_are_made_for_a_new_file(whole, tmp_path):
    whole.save(tmp_path / "a" / "b" / "model.cida")
    assert load(tmp_path / "a" / "b" / "model.cida").n_steps_ == 5


# --- modules of the user's own ----------------------------------------------------------------


class Tied(nn.Module):
    """The same layer twice, and batch normalisation with its counters."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.second = self.first
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x):
        return self.norm(self.second(torch.relu(self.first(x))))


@pytest.mark.parametrize(
    "encoder",
    [lambda: nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), Tied],
    ids=["batch norm", "shared weights"],
)
def test_modules_of_your_own_are_passed_again(data, path, encoder):
    model = CIDAClassifier(**SMALL, encoder=encoder()).fit(**data)
    model.save(path)
    passed = encoder()
    before = {k: v.clone() for k, v in passed.state_dict().items()}
    again = CIDAClassifier.load(path, encoder=passed)
    assert again.encoder is passed
    assert all(torch.equal(before[k], v) for k, v in passed.state_dict().items())
    assert np.array_equal(again.predict_proba(data["X"]), model.predict_proba(data["X"]))
    refused(path, "encoder", "module of your own", "pass it again", "load(path, encoder=...)")


def test_a_predictor_of_your_own_is_passed_again(data, path):
    model = CIDARegressor(**SMALL, predictor=nn.Linear(4, 1)).fit(**data)
    model.save(path)
    again = load(path, predictor=nn.Linear(4, 1))
    assert np.array_equal(again.predict(**at(data)), model.predict(**at(data)))
    refused(path, "predictor", "pass it again", "load(path, predictor=...)")


def test_a_module_of_another_shape_is_refused(data, path):
    CIDAClassifier(**SMALL, encoder=nn.Linear(2, 3)).fit(**data).save(path)
    refused(path, "model.cida", "weight", "pass load() the encoder", encoder=nn.Linear(2, 4))


# --- files that cannot be read ----------------------------------------------------------------


@pytest.mark.parametrize("share", [0, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99])
def test_a_truncated_file_is_refused(content, path, share):
    path.write_bytes(content[: int(share * len(content))])
    refused(path, "model.cida", "damaged or cut short", "save the model again")


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_a_file_cut_anywhere_is_refused(content, path, data):
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    refused(path, "model.cida", "damaged or cut short")


def rewrite(content, path, change, drop=()):
    """The same file with another header, or without some tensors."""
    path.write_bytes(content)
    tensors, header = load_file(path), header_of(path)
    change(header)
    kept = {name: t for name, t in tensors.items() if name not in drop}
    save_file(kept, path, metadata={"cida": json.dumps(header)})


def test_a_file_of_another_format_version_is_refused(content, path):
    rewrite(content, path, lambda h: h.update(format=9, cida_version="9.8.7"))
    refused(path, "model.cida", "format 9", "reads format 3", "cida 9.8.7", "install")


@pytest.mark.parametrize(
    "name", ["x_mean", "index_seen", "encoder.frame.turn", "encoder.body.body.0.weight"]
)
def test_a_file_without_one_of_its_tensors_is_refused_by_its_name(content, path, name):
    rewrite(content, path, lambda h: None, drop=[name])
    refused(path, "model.cida", name.removeprefix("encoder."), "save the model again")


@pytest.mark.parametrize(
    "name",
    [
        "class_name",
        "parameters",
        "plan",
        "layout",
        "labels",
        "summary",
        "diagnoses",
        "n_features_in",
    ],
)
def test_a_file_without_part_of_its_header_is_refused_by_its_name(content, path, name):
    rewrite(content, path, lambda h: h.pop(name))
    refused(path, "model.cida", name, "save the model again")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_is_refused_unopened(whole, path, protocol):
    path.write_bytes(pickle.dumps(whole, protocol=protocol))
    refused(path, "model.cida", "is a pickle", "can run any code", "save()")


@pytest.mark.parametrize("new", [True, False])
def test_a_torch_archive_is_refused_unopened(whole, path, new):
    torch.save(whole.game_.state_dict(), path, _use_new_zipfile_serialization=new)
    refused(path, "model.cida", "torch.save", "can run any code", "save()")


def test_a_pickle_that_would_run_code_does_not_run_it(path, tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    path.write_bytes(pickle.dumps(Trap()))
    refused(path, "is a pickle")
    assert not (tmp_path / "sprung").exists()


def test_a_file_that_is_not_there_is_named(tmp_path):
    words = "there is no model file at", "nowhere.cida", "check the path"
    refused(tmp_path / "nowhere.cida", *words, error=FileNotFoundError)
    refused(tmp_path, "there is no model file at", error=FileNotFoundError)


def test_a_safetensors_file_that_is_not_ours_is_refused(path):
    save_file({"weight": torch.ones(3)}, path)
    refused(path, "model.cida", "without cida's header", "written by save()")
    save_file({"weight": torch.ones(3)}, path, metadata={"cida": "[1"})
    refused(path, "model.cida", "without cida's header")


def test_the_other_class_says_which_one_to_use(kind, data, path):
    other = CIDARegressor if kind is CIDAClassifier else CIDAClassifier
    kind(**SMALL).fit(**data).save(path)
    with pytest.raises(ModelFileError) as caught:
        other.load(path)
    message = str(caught.value)
    assert f"holds a {kind.__name__}, not a {other.__name__}" in message
    assert f"use {kind.__name__}.load or cida.load" in message


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_save_that_fails_leaves_the_old_file(whole, content, path, monkeypatch, step):
    path.write_bytes(content)

    def fail(*arguments):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="disk is full"):
        whole.save(path)
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]
