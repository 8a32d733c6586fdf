"""What counts as an answer to a wrong file: it is read, or it is refused in words for people."""

import linecache
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

import cida
from cida.errors import CommandError

HOME = Path(cida.__file__).parent
REFUSALS = (
    ValueError,
    TypeError,
    OSError,
    ImportError,
    CommandError,
    FloatingPointError,
)  # what the command line tells
LONGEST = 1500  # letters of a sentence: it must not quote the whole file


@dataclass(frozen=True)
class Verdict:
    """``fault`` is empty where all is well; ``words`` are those of a refusal."""

    accepted: bool
    fault: str = ""
    words: str = ""
    seconds: float = 0.0


def judge(load, *arguments):
    """Calls the loader and looks at how it ends."""
    started = time.process_time()  # of the processor: others may be using the machine
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            load(*arguments)
        except REFUSALS as error:
            fault = _refusal_fault(error)
            verdict = Verdict(False, fault, fault or str(error))
        except MemoryError:
            verdict = Verdict(False, "it asks for more memory than it may have: " + _place())
        except Exception:
            verdict = Verdict(False, f"it ends with a traceback: {_place()}")
        else:
            verdict = Verdict(True)
    noise = [one for one in told if not issubclass(one.category, cida.CidaWarning)]
    if noise and not verdict.fault:
        one = noise[0]
        told = f"{one.category.__name__}: {one.message} ({one.filename}:{one.lineno})"
        verdict = Verdict(verdict.accepted, f"it warns of its insides: {told}")
    return Verdict(verdict.accepted, verdict.fault, verdict.words, time.process_time() - started)


def _refusal_fault(error):
    """What is wrong with the words of a refusal; they must be written by cida, in one sentence.

    Words of the system are as good where they name the file.
    """
    words = str(error)
    if not words.strip():
        return f"it says nothing: {_place()}"
    if len(words) > LONGEST:
        return f"it says {len(words)} letters: {words[:100]} ... {_place()}"
    if len(words.strip().split("\n")) > 1:
        return f"it says several lines: {words[:300]!r}"
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return ""
    last = traceback.extract_tb(error.__traceback__)[-1]
    ours = Path(last.filename).is_relative_to(HOME)
    if not ours or not linecache.getline(last.filename, last.lineno).strip().startswith("raise"):
        return f"the words are not cida's: {_place()}"
    return ""


def _place():
    """The error and the last lines of ours that it came through."""
    lines = traceback.format_exc().strip().splitlines()
    places = [line.strip() for line in lines if line.strip().startswith("File")]
    ours = [line for line in places if str(HOME) in line]
    return " <- ".join([lines[-1][:300], *reversed(ours[-3:]), *places[-1:]])
