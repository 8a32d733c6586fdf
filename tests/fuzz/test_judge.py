"""The judge of the fuzz itself: what it lets pass and what it does not."""

import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from judge import judge

sys.path.pop(0)
from cida.spaces import space_from_dict


def test_a_refusal_in_cidas_words_passes():
    verdict = judge(space_from_dict, {"kind": "knot"})
    assert (verdict.accepted, verdict.fault) == (False, "")
    assert "knot" in verdict.words


def test_the_systems_words_pass_where_they_name_the_file(tmp_path):
    assert judge((tmp_path / "absent").read_bytes).fault == ""


@pytest.mark.parametrize(
    ("load", "fault"),
    [
        (lambda: {}["key"], "traceback"),
        (lambda: int("x"), "words are not cida's"),
        (lambda: (_ for _ in ()).throw(ValueError("")), "says nothing"),
        (lambda: (_ for _ in ()).throw(ValueError("a\nb")), "several lines"),
        (lambda: bytearray(1 << 60), "memory"),
        (lambda: warnings.warn("divide", RuntimeWarning, stacklevel=1), "warns of its insides"),
    ],
)
def test_anything_else_is_a_fault(load, fault):
    assert fault in judge(load).fault
