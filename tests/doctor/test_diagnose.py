"""Each rule of the doctor on events and facts made by hand; real trainings are elsewhere."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cida.doctor import DIAGNOSIS_CODES, Diagnosis, Suggestion
from cida.doctor.diagnose import diagnose, final_metrics, skipped_checks
from cida.doctor.fit_summary import FitSummary, IndexColumnSummary
from cida.doctor.thresholds import THRESHOLDS
from cida.label_shift import LabelShift
from cida.training import Event


def label_shift(amount, label=1):
    """Labels that change along u by this much, the share of one class from 5% to 50%."""
    return LabelShift(amount, 0.01, label, 0.05, 0.5, (0.0,), (1.0,))


HEALTHY = FitSummary(
    game="Adversarial",
    has_index=True,
    is_adaptive=True,
    is_conditional=False,
    uses_head=True,
    default_lambda=1.0,
    lambda_d=1.0,
    discriminator_steps=2,
    ceiling=True,
    curriculum=0.0,
    steps=1000,
    learning_rate=5e-4,
    weight_decay=0.0,
    has_custom_encoder=False,
    coordinates="auto",
    n_source_rows=600,
    n_target_rows=900,
    n_classes=2,
    index_columns=(IndexColumnSummary(1.0, 0.01, 0.02),),
    label_shift=label_shift(0.0),
    marginal_label_loss=0.7,
    knn_loss=0.1,
    encoding_std=1.0,
    encoding_rms=1.5,
    majority_share_source=0.52,
    majority_share_far=0.55,
    index_r2=0.1,
    dominant_index_r2=0.0,
)


def run(prediction=0.02, gap=0.0, pull=0.5, gain=0.0, count=100, start=0.7):
    """A run's events; figures are numbers, or functions of the share of the run that is done."""

    def at(value, time):
        return value(time) if callable(value) else value

    made = []
    for k in range(count):
        time = (k + 0.5) / count
        losses = {"prediction": at(prediction, time) + (start if k < 5 else 0.0)}
        ceilings = {}
        if gap is not None:
            losses["discriminator"], ceilings["discriminator"] = 3.4 - at(gap, time), 3.4
        health = {
            "encoding_std": 1.0,
            "adversarial_gradient_share": at(pull, time),
            "discriminator_gain": at(gain, time),
        }
        made.append(Event(10 * (k + 1), 10 * count, 1.0, 5e-4, 1.0, losses, ceilings, health))
    return made


def named(history=None, **changes):
    findings = diagnose(run() if history is None else history, replace(HEALTHY, **changes))
    return [finding.code for finding in findings]


def test_a_healthy_run_has_no_fault():
    assert named() == []


# --- the rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("same", "found"), [(0.89, []), (0.91, ["index-constant"])])
def test_an_index_of_nearly_one_value(same, found):
    assert named(index_columns=(IndexColumnSummary(1.0, same, same),)) == found


def test_an_index_stretched_by_stray_values():
    assert named(index_columns=(IndexColumnSummary(1.0, 0.01, 0.98),)) == ["index-unscaled"]


def test_an_index_of_two_values_is_no_fault():
    assert named(index_columns=(IndexColumnSummary(1.0, 0.6, 0.6),)) == []


@pytest.mark.parametrize(("spread", "found"), [(0.01, True), (0.5, False), (99.0, True)])
def test_a_space_that_does_not_scale(spread, found):
    assert (
        named(index_columns=(IndexColumnSummary(spread, 0.01, 0.02),)) == ["index-unscaled"] * found
    )


def test_a_column_among_several_is_named_by_its_number():
    columns = (IndexColumnSummary(1.0, 0.01, 0.02), IndexColumnSummary(1.0, 0.95, 0.95))
    (finding,) = diagnose(run(), replace(HEALTHY, index_columns=columns))
    assert finding.evidence == {"mode_share": 0.95, "column": 1}
    assert "column 1 of domain_index" in finding.summary()


def test_few_rows_on_either_side_and_few_of_each_class():
    assert named(n_source_rows=40) == ["too-few-rows"]
    assert named(n_target_rows=40) == ["too-few-rows"]
    assert named(n_source_rows=150, n_classes=20) == ["too-few-rows"]
    assert named(n_source_rows=40, is_adaptive=False) == []


def test_faults_of_the_rows_are_told_alone():
    assert named(run(gap=1.0), n_source_rows=40, lambda_d=0.001, majority_share_far=1.0) == [
        "too-few-rows"
    ]


def test_labels_that_move_are_a_fault_where_the_game_hides_the_index():
    moves = label_shift(0.2)
    assert named(label_shift=moves) == ["label-shift"]
    assert named(label_shift=moves, majority_share_far=1.0) == ["label-shift"]  # as it should be
    assert named(label_shift=moves, is_conditional=True) == []
    assert named(label_shift=moves, is_adaptive=False) == []


# --- the game ------------------------------------------------------------------------------------


def test_a_discriminator_above_its_ceiling_lags():
    far_above = run(gap=lambda time: -1.0 if time > 0.5 else 0.0)
    (finding,) = diagnose(far_above, replace(HEALTHY, index_r2=0.9, ceiling=False))
    assert finding.code == "discriminator-lagging"
    assert finding.suggestion == Suggestion("ceiling", False, True)
    assert finding.describe_suggestion() == "Set ceiling=True."
    assert named(far_above, index_r2=0.0) == []  # z is aligned: it does no harm
    assert named(run(gap=lambda time: -1.0 if time < 0.3 else 0.0), index_r2=0.9) == []


def test_a_discriminator_that_overlooks_what_a_straight_line_reads_lags():
    assert named(dominant_index_r2=0.6) == ["discriminator-lagging"]
    assert named(run(gap=1.0), dominant_index_r2=0.6) == ["not-converged"]  # it sees it


def test_a_discriminator_that_is_never_felt_lags_if_z_tells_the_index():
    unfelt = run(pull=0.0)
    assert named(unfelt, index_r2=0.5) == ["discriminator-lagging"]
    assert named(unfelt, index_r2=0.05) == []
    once_seen = run(pull=0.0, gap=lambda time: 0.5 if time < 0.2 else 0.0)
    assert named(once_seen, index_r2=0.5) == []


def test_a_source_that_is_not_learnt_under_a_strong_pull_has_too_large_a_lambda():
    drowned = run(prediction=0.68, pull=0.99)
    (finding,) = diagnose(drowned, replace(HEALTHY, lambda_d=100.0))
    assert (finding.code, finding.describe_suggestion()) == (
        "lambda-too-large",
        "Lower lambda_d from 100 to 1.",
    )
    (finding,) = diagnose(drowned, HEALTHY)
    assert (finding.code, finding.describe_suggestion()) == (
        "lambda-too-large",
        "Lower lambda_d from 1 to 0.1.",
    )


def test_labels_that_neighbours_do_not_tell_either_are_no_fault_of_lambda():
    assert named(run(prediction=0.68, pull=0.99), knn_loss=0.66) == []


def test_a_constant_encoding_is_a_collapse_with_the_likeliest_cause():
    drowned = run(prediction=0.7, pull=0.9)
    flat = {"encoding_std": 1e-6, "majority_share_source": 1.0, "majority_share_far": 1.0}
    assert named(drowned, **flat) == ["encoder-collapsed"]
    assert named(drowned, **flat, lambda_d=50.0) == ["lambda-too-large"]
    (finding,) = diagnose(drowned, replace(HEALTHY, **flat, weight_decay=10.0))
    assert finding.describe_suggestion() == "Lower weight_decay from 10 to 0."
    (finding,) = diagnose(drowned, replace(HEALTHY, **flat, has_custom_encoder=True))
    assert "another encoder" in finding.describe_suggestion()


def test_an_index_still_told_under_a_weak_pull_has_too_small_a_lambda():
    (finding,) = diagnose(run(gap=0.5, pull=0.01), replace(HEALTHY, lambda_d=0.01))
    assert finding == Diagnosis(
        "lambda-too-small",
        {"index_share_read": pytest.approx(0.632, abs=1e-3), "adversarial_gradient_share": 0.01},
        Suggestion("lambda_d", 0.01, 1.0),
    )
    assert str(finding) == (
        "lambda-too-small: z still tells 63% of the index, and 1.0% of the gradient in z was the "
        "adversary's. Raise lambda_d from 0.01 to 1."
    )
    assert named(run(gap=0.5, pull=0.01)) == ["lambda-too-small"]
    assert named(run(gap=0.5, pull=0.99), lambda_d=0.01) == ["lambda-too-small"]
    assert named(run(gap=0.05, pull=0.01), lambda_d=0.01) == []


def test_many_steps_of_the_discriminator_overpower_the_encoder():
    (finding,) = diagnose(run(gap=0.8, pull=0.9), replace(HEALTHY, discriminator_steps=20))
    assert finding.code == "discriminator-overpowering"
    assert finding.describe_suggestion() == "Lower discriminator_steps from 20 to 2."
    drowned = run(prediction=0.68, pull=0.99)
    assert named(drowned, discriminator_steps=20) == ["discriminator-overpowering"]
    assert named(discriminator_steps=20) == []


def test_a_discriminator_that_learns_each_round_by_heart_overpowers_too():
    (finding,) = diagnose(run(gap=0.8, pull=0.9, gain=0.5), HEALTHY)
    assert finding.code == "discriminator-overpowering"
    assert "batch_size" in finding.describe_suggestion()


def test_an_index_told_while_the_range_widens_is_too_fast_a_curriculum():
    peak = run(gap=lambda time: 0.5 if 0.1 < time < 0.3 else 0.0)
    (finding,) = diagnose(peak, replace(HEALTHY, curriculum=0.05))
    assert finding.describe_suggestion() == "Raise curriculum from 0.05 to 0.9."
    (finding,) = diagnose(peak, replace(HEALTHY, curriculum=0.9))
    assert (finding.code, finding.describe_suggestion()) == (
        "curriculum-too-fast",
        "Raise steps from 1000 to 6000.",
    )
    assert named(peak) == []


def test_a_prediction_loss_that_still_falls_has_not_converged():
    falling = run(prediction=lambda time: 0.68 - 0.2 * time, start=0.0)
    assert named(falling) == ["not-converged"]
    (finding,) = diagnose(falling, replace(HEALTHY, learning_rate=1e-5))
    assert finding.describe_suggestion() == "Raise learning_rate from 1e-05 to 0.0005."
    assert named(falling, knn_loss=0.65) == []


def test_a_game_that_is_not_at_rest_has_not_converged():
    assert named(run(gap=0.5, pull=0.6)) == ["not-converged"]
    assert named(run(gap=0.5, pull=0.6), is_conditional=True) == []
    assert named(run(gap=0.5, pull=0.6), uses_head=False) == []  # it is not about the index


def test_one_class_far_away_is_told_alone_or_after_its_cause():
    assert named(majority_share_far=0.99) == ["predictions-collapsed"]
    assert named(majority_share_far=0.99, majority_share_source=0.9) == []
    assert named(run(gap=0.5, pull=0.01), majority_share_far=0.99, lambda_d=0.01) == [
        "lambda-too-small",
        "predictions-collapsed",
    ]
    (finding,) = diagnose(
        run(gap=None), replace(HEALTHY, is_adaptive=False, majority_share_far=1.0)
    )
    assert finding.describe_suggestion() == "Adapt to the target: set discriminator='auto'."


# --- when to be silent ---------------------------------------------------------------------------


def test_short_runs_and_models_without_an_index_are_not_judged():
    bad = {"majority_share_far": 1.0, "n_source_rows": 3, "lambda_d": 0.001}
    assert named(run(gap=1.0), **bad, steps=THRESHOLDS.min_steps - 1) == []
    assert named(run(gap=1.0), **bad, has_index=False) == []
    (check,) = skipped_checks([], replace(HEALTHY, steps=20))
    assert (check.code, check.evidence) == ("too-few-steps", {"steps": 20, "min_steps": 200})
    assert check.summary() == "20 steps are too few to judge; at least 200 are needed."
    (check,) = skipped_checks([], replace(HEALTHY, has_index=False))
    assert check.code == "no-index"
    assert "without an index" in check.summary()


def test_without_facts_the_events_are_judged_and_the_rest_is_told():
    settings_alone = FitSummary(**{k: v for k, v in vars(HEALTHY).items() if _is_setting(k)})
    history = run(gap=0.5, pull=0.01)
    assert [f.code for f in diagnose(history, settings_alone)] == ["lambda-too-small"]
    (check,) = skipped_checks(history, settings_alone)
    assert check.code == "unknown-rows"
    assert "does not describe its rows" in check.summary()
    assert skipped_checks(history, HEALTHY) == []


def test_events_without_health_figures_leave_the_game_unjudged():
    old = [replace(event, health={}) for event in run(gap=0.5)]
    assert named(old) == []
    (check,) = skipped_checks(old, HEALTHY)
    assert check.code == "too-few-probes"
    assert "health figures" in check.summary()


def _is_setting(name):
    return getattr(FitSummary, name, "a field without a default") == "a field without a default"


def test_the_main_figures_are_those_of_the_end():
    found = final_metrics(run(prediction=0.07, gap=0.5), HEALTHY)
    assert found["index_share_read"] == pytest.approx(1 - math.exp(-1))
    assert found["remaining_loss_share"] == pytest.approx(0.1)
    assert found["adversarial_gradient_share"] == 0.5
    assert final_metrics([], replace(HEALTHY, majority_share_far=None)).keys() == {
        "encoding_std",
        "majority_share_source",
    }


numbers = st.floats(0, 1)


@given(
    st.fixed_dictionaries(
        {
            "prediction": numbers,
            "gap": st.floats(-5, 5) | st.none(),
            "pull": numbers,
            "gain": numbers,
            "count": st.integers(1, 60),
        }
    ),
    st.fixed_dictionaries(
        {
            "lambda_d": st.sampled_from([0.0, 0.01, 1.0, 100.0]),
            "curriculum": numbers,
            "is_adaptive": st.booleans(),
            "label_shift": st.sampled_from(
                [None, label_shift(0.0), label_shift(0.2), label_shift(0.3, None)]
            ),
            "knn_loss": st.none() | numbers,
            "marginal_label_loss": st.none() | numbers,
            "index_r2": st.none() | numbers,
            "dominant_index_r2": st.none() | numbers,
            "majority_share_far": st.none() | numbers,
            "encoding_std": st.none() | numbers,
            "discriminator_steps": st.integers(1, 30),
        }
    ),
)
@settings(max_examples=200, deadline=None)
def test_whatever_the_figures_findings_are_named_sentences_and_none_comes_twice(events, facts):
    findings = diagnose(run(**events), replace(HEALTHY, **facts))
    names = [finding.code for finding in findings]
    assert set(names) <= set(DIAGNOSIS_CODES)
    assert len(names) == len(set(names)) <= 3
    for finding in findings:
        assert finding.describe_evidence().endswith(".")
        assert finding.describe_suggestion().endswith(".")
        assert "nan" not in str(finding)
        assert Diagnosis.from_dict(json.loads(json.dumps(finding.to_dict()))) == finding


def test_a_diagnosis_of_another_version_lists_its_figures():
    finding = Diagnosis.from_dict({"code": "moonstruck", "evidence": {"phase": 0.5}})
    assert finding.describe_evidence() == "phase = 0.5."
    with pytest.raises(ValueError, match="evidence"):
        Diagnosis.from_dict({"code": "label-shift", "evidence": {"shift": "much"}})
