"""What can be said about a fitted model."""

from cida.diagnostics.accuracy import BinScore, accuracy, root_mean_squared_error, score_by_bin
from cida.diagnostics.alignment import Support, explained_share, target_support
from cida.diagnostics.certificate import Certificate, certify
from cida.diagnostics.doctor import FAULTS, Finding, examine
from cida.diagnostics.expected import Calibration, Expected, calibrate, expected_along
from cida.diagnostics.facts import Facts
from cida.diagnostics.field import Candidate, Field
from cida.diagnostics.label_shift import LabelShift, label_shift
from cida.diagnostics.ranges import outermost
from cida.diagnostics.validators import VALIDATORS, Validator, named_validator

__all__ = [
    "FAULTS",
    "VALIDATORS",
    "BinScore",
    "Calibration",
    "Candidate",
    "Certificate",
    "Expected",
    "Facts",
    "Field",
    "Finding",
    "LabelShift",
    "Support",
    "Validator",
    "accuracy",
    "calibrate",
    "certify",
    "examine",
    "expected_along",
    "explained_share",
    "label_shift",
    "named_validator",
    "outermost",
    "root_mean_squared_error",
    "score_by_bin",
    "target_support",
]
