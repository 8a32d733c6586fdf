"""Which of several models to keep, and what score to expect of it, without target labels."""

from cida.selection.expected_score import (
    Calibration,
    ExpectedScore,
    calibrate,
    expected_scores_by_cell,
)
from cida.selection.source_ranges import nearest_source_third
from cida.selection.validation_set import CandidateOutputs, ValidationSet
from cida.selection.validators import VALIDATORS, Validator, get_validator

__all__ = [
    "VALIDATORS",
    "Calibration",
    "CandidateOutputs",
    "ExpectedScore",
    "ValidationSet",
    "Validator",
    "calibrate",
    "expected_scores_by_cell",
    "get_validator",
    "nearest_source_third",
]
