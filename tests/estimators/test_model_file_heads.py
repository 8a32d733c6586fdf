"""Models with any of the built-in heads, to a file and back."""

import numpy as np
import pytest

from cida import CIDAClassifier, Periodic, load
from cida.discriminators import DISCRIMINATORS

SETTINGS = {"mixture": {"components": 2}, "von-mises-mixture": {"components": 2}}
SETTINGS |= {"histogram": {"bins": 9}, "flow": {"bins": 4}}


@pytest.mark.parametrize("name", DISCRIMINATORS)
def test_a_loaded_model_can_be_fitted_again_with_its_own_head(name, tmp_path):
    random = np.random.default_rng(0)
    x, hour = random.normal(size=(60, 2)), random.uniform(0, 24, 60)
    y = np.where(hour < 12, x[:, 0] > 0, np.nan)
    head = DISCRIMINATORS[name](hidden=(4,), **SETTINGS.get(name, {}))
    sizes = {"steps": 5, "encoder_hidden": (8,), "encoding_width": 4}
    model = CIDAClassifier(head, space=Periodic(24), random_state=0, **sizes)
    model.fit(x, y, domain_index=hour).save(tmp_path / "model.cida")
    again = load(tmp_path / "model.cida")
    assert type(again.discriminator) is type(head)
    assert again.discriminator.settings == head.settings
    encoding = model.transform(x, domain_index=hour)
    assert np.array_equal(again.transform(x, domain_index=hour), encoding)
    refitted = again.fit(x, y, domain_index=hour)
    assert np.array_equal(refitted.transform(x, domain_index=hour), encoding)
