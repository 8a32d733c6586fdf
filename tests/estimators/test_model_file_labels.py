"""Labels and the weights of classes, to a file and back."""

import numpy as np
import pytest

from cida import CIDAClassifier, load

SMALL = {"steps": 5, "encoder_hidden": (8,), "encoding_width": 4, "random_state": 0}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.cida"


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "a longer yes ü"]),
        np.array([3, -1]),
        np.array([3, 7], dtype=np.int8),
        np.array([0.0, 1.0]),
        np.array([2.0, 5.0], dtype=np.float32),
        np.array([False, True]),
    ],
    ids=lambda labels: labels.dtype.str,
)
def test_labels_come_back_in_their_own_type(world, path, labels):
    y = labels[world.y]
    model = CIDAClassifier(**SMALL).fit(world.x, y, domain_index=world.u, source=world.source)
    model.save(path)
    again = CIDAClassifier.load(path)
    assert again.classes_.dtype == model.classes_.dtype == labels.dtype
    assert np.array_equal(again.classes_, np.sort(labels))
    assert np.array_equal(
        again.predict(world.x, domain_index=world.u), model.predict(world.x, domain_index=world.u)
    )
    assert np.array_equal(
        again.predict_proba(world.x, domain_index=world.u),
        model.predict_proba(world.x, domain_index=world.u),
    )


@pytest.mark.parametrize(
    ("labels", "class_weight"),
    [
        ([0, 1], {0: 1.0, 1: 5.0}),
        ([0, 1], "balanced"),
        (["space", "earth"], {"space": 2.0, "earth": 1.0}),
        (["discriminator", "own"], {"discriminator": 2.0, "own": 1.0}),
    ],
    ids=["integers", "balanced", "space", "discriminator"],
)
def test_class_weights_come_back(world, path, labels, class_weight):
    y = np.array(labels)[world.y]
    arguments = {"domain_index": world.u, "source": world.source}
    model = CIDAClassifier(**SMALL, class_weight=class_weight).fit(world.x, y, **arguments)
    model.save(path)
    again = load(path)
    assert again.class_weight == class_weight
    encoding = again.fit(world.x, y, **arguments).transform(world.x, domain_index=world.u)
    assert np.array_equal(encoding, model.transform(world.x, domain_index=world.u))
