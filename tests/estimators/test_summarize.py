"""What a fit learns of itself: facts, findings and warnings, kept in the model file."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from cida import CIDAClassifier, CIDARegressor, CidaWarning, load
from cida.data import IndexedDataset
from cida.datasets import make_circle, make_irrelevant_index
from cida.doctor.fit_summary import FitSummary
from cida.io.tensors import read_model_file

SMALL = {"capacity": "mlp", "encoder_hidden": (16,), "encoding_width": 4, "random_state": 100}
LONG = {**SMALL, "steps": 210, "batch_size": 32, "learning_rate": 5e-3}


@pytest.fixture(scope="module")
def world():
    return make_irrelevant_index(400, seed=100)


def fit(model, world, **more):
    return model.fit(world.x, world.training_labels, domain_index=world.u, **more)


@pytest.fixture(scope="module")
def weak(world):
    """A model in which everything decays to nothing, and its warnings."""
    with pytest.warns(CidaWarning) as caught:
        model = fit(CIDAClassifier(coordinates="raw", weight_decay=200.0, **LONG), world)
    return model, caught


def test_a_finding_is_kept_and_warned_of_at_the_line_that_called_fit(weak):
    model, caught = weak
    (finding,) = model.diagnoses_
    assert finding.code == "encoder-collapsed"
    (warning,) = caught
    assert str(warning.message) == str(finding)
    assert warning.filename == __file__


def test_facts_of_a_healthy_fit(world):
    model = fit(CIDAClassifier(**LONG), world)  # a warning would be an error here
    facts = model.summary_
    assert model.diagnoses_ == []
    assert (facts.n_source_rows, facts.n_target_rows) == (world.source.sum(), (~world.source).sum())
    assert (facts.n_classes, facts.steps, facts.lambda_d) == (2, 210, 1.0)
    assert facts.is_adaptive
    assert facts.uses_head
    assert facts.is_complete
    share = world.y[world.source].mean()
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert facts.marginal_label_loss == pytest.approx(entropy)
    assert facts.knn_loss < 0.5 * entropy
    (column,) = facts.index_columns
    assert column.std == pytest.approx(1)


def test_the_shares_of_one_class_are_those_of_the_predictions(world):
    model = fit(CIDAClassifier(**LONG), world)
    said = model.predict(world.x, domain_index=world.u)
    share = said[world.source].mean()
    assert model.summary_.majority_share_source == pytest.approx(max(share, 1 - share))
    target = np.flatnonzero(~world.source)
    far = target[np.argsort(world.u[target])[-(len(target) // 4) :]]
    share = said[far].mean()
    assert model.summary_.majority_share_far == pytest.approx(max(share, 1 - share))


def test_a_handful_of_far_rows_says_nothing_of_the_predictions(world):
    kept = np.r_[np.flatnonzero(world.source), np.flatnonzero(~world.source)[:40]]
    labels = world.training_labels[kept]
    model = CIDAClassifier(None, **{**SMALL, "steps": 3})
    model.fit(world.x[kept], labels, domain_index=world.u[kept])
    assert model.summary_.majority_share_far is None


def test_the_spread_of_z_is_that_of_transform(world):
    model = fit(CIDAClassifier(**LONG), world)
    z = model.transform(world.x, domain_index=world.u)
    assert model.summary_.encoding_std == pytest.approx(np.sqrt(z.var(0).mean()), rel=1e-4)
    assert model.summary_.encoding_rms == pytest.approx(np.sqrt((z**2).mean()), rel=1e-4)


def test_labels_of_the_target_change_no_fact(world):
    found = []
    for labels in (world.y, np.where(world.source, world.y, 1 - world.y)):
        model = CIDAClassifier(**LONG)
        model.fit(world.x, labels, domain_index=world.u, source=world.source)
        found.append(model.summary_)
    assert found[0] == found[1]


def test_the_checkup_leaves_the_random_state_alone(world):
    state = torch.get_rng_state()
    fit(CIDAClassifier(stochastic="dropout", **LONG), world)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize(
    "settings",
    [
        {"discriminator": None},
        {"stochastic": "gaussian"},
        {"game": "distance-correlation"},
        {"encoder": nn.Sequential(nn.Linear(4, 8), nn.Tanh()), "coordinates": "raw"},
    ],
    ids=str,
)
def test_every_kind_of_model_has_facts(kind, world, settings):
    model = fit(kind(**{**SMALL, "steps": 3, **settings}), world)
    assert model.summary_.is_complete
    assert model.summary_.encoding_std > 0
    assert model.summary_.is_adaptive == ("discriminator" not in settings)
    assert (model.summary_.n_classes is None) == (kind is CIDARegressor)
    assert model.diagnoses_ == []


def test_rows_made_by_the_user_have_facts_too(world):
    rows = IndexedDataset(
        torch.from_numpy(world.x).float(),
        torch.from_numpy(world.y),
        torch.from_numpy(world.u),
        torch.from_numpy(world.source),
    )
    model = CIDAClassifier(**{**SMALL, "steps": 3}).fit_dataset(rows)
    assert model.summary_.n_source_rows == world.source.sum()


def test_without_an_index_there_is_nothing_to_examine(kind, world):
    model = kind(**LONG).fit(world.x, world.y)
    assert model.diagnoses_ == []
    assert not model.summary_.has_index
    assert not model.summary_.is_complete


@pytest.mark.filterwarnings("ignore::cida.CidaWarning")  # it is no long training
def test_a_model_with_labels_everywhere_does_not_lack_a_target(kind):
    data = make_circle(n_domains=6, n_per_domain=60, n_source_domains=6, seed=100)
    model = kind(discriminator=None, **LONG).fit(data.x, data.y, domain_index=data.u)
    assert model.summary_.n_target_rows == 0
    assert "too-few-rows" not in [finding.code for finding in model.diagnoses_]


def test_labels_that_move_are_warned_of_once_and_found():
    rng = np.random.default_rng(100)
    u = np.sort(rng.uniform(0, 2, 700))
    y = rng.random(700) < 0.05 + 0.9 * np.minimum(u, 1)
    x = rng.normal(size=(700, 2)) + 2 * y[:, None]
    model = CIDAClassifier(**LONG)
    with pytest.warns(CidaWarning) as caught:
        model.fit(x, np.where(u <= 1, y, np.nan), domain_index=u)
    told = [str(warning.message) for warning in caught]
    assert sum("y itself seems to depend on domain_index" in words for words in told) == 1
    assert model.diagnoses_[0].code == "label-shift"
    assert "the share of one class in the source goes from" in model.diagnoses_[0].summary()


# --- files ---------------------------------------------------------------------------------------


def test_facts_and_findings_are_saved_and_loaded(weak, tmp_path):
    model, _ = weak
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.summary_ == model.summary_
    assert again.diagnoses_ == model.diagnoses_
    again.save(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.filterwarnings("ignore::cida.CidaWarning")
def test_the_header_alone_tells_the_facts_of_a_model_with_modules_of_ones_own(world, tmp_path):
    encoder = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
    model = fit(CIDAClassifier(encoder=encoder, coordinates="raw", **LONG), world)
    model.save(tmp_path / "model")
    _, header = read_model_file(tmp_path / "model")
    summary = FitSummary.from_dict(header["summary"])
    assert summary == model.summary_
    assert summary.has_custom_encoder


def test_a_finding_reads_as_one_warning(weak):
    (finding,) = weak[0].diagnoses_
    found, change = finding.describe_evidence(), finding.describe_suggestion()
    assert str(finding) == f"encoder-collapsed: {found} {change}"


def test_a_fit_that_is_repeated_has_the_same_facts(world):
    first, second = (fit(CIDAClassifier(**LONG), world).summary_ for _ in range(2))
    assert isinstance(first, FitSummary)
    assert first == second


def test_warnings_can_be_silenced_and_findings_stay(world):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CidaWarning)
        model = fit(CIDAClassifier(lambda_d=0.0, **LONG), world)
    assert isinstance(model.diagnoses_, list)
