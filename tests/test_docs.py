"""Every block of code in README.md and docs/ runs, or says above it why it does not.

Words in a comment right above a fence:

    <!-- not run: needs the recordings of NSRR -->   the block is only read: its `cida` lines parse
    <!-- file: heads.py -->                          the block is written to this file
    <!-- output -->                                  the block is what the one before it prints

and `<!-- setup ... -->`, anywhere, has lines of Python that readers need not see. The blocks of a
page share one namespace and one fresh folder. Where the steps of a fit are left open, few are made.
"""

import contextlib
import doctest
import io
import os
import re
import runpy
import shlex
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import get_args, get_type_hints

import matplotlib as mpl
import pytest

from cida import policy
from cida.cli import main
from cida.cli.app import find_commands
from cida.experiments.commands import Reproduce
from cida.experiments.reproduce import ReproduceRun
from cida.training import seeded

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
PAGES = [page for page in PAGES if not {"_build", "gallery"} & set(page.relative_to(ROOT).parts)]
FEW_STEPS = 40
FIGURE = re.compile(r"-?\b\d+\.\d+\b")

PYTHON, SHELL = {"python"}, {"sh", "bash", "console"}
SHOWN = {
    "",
    "text",
    "json",
    "{toctree}",
    "{include}",
    "{eval-rst}",
}  # no code: outputs, files, the site's own
WORDS = re.compile(
    r"<!--\s*(?P<word>setup|not run|file|output)(?:\s|:)?(?P<more>.*?)-->", re.DOTALL
)
PARTS = re.compile(
    r"^<!--(?P<comment>.*?)-->|^(?P<fence>`{3,})(?P<kind>[^\n]*)\n(?P<code>.*?)^(?P=fence)\s*$",
    re.DOTALL | re.MULTILINE,
)

# What blocks need, by how they begin, on pages that are also read where comments show.
CIRCLE = """
from cida.datasets import make_circle

data = make_circle(n_per_domain=20, seed=100)
X, y, u = X_new, _, u_new = data.x, data.training_labels, data.u
"""
TWO_COLUMNS = """
import pandas as pd
from cida.datasets import make_plane

data = make_plane(n_samples=400, seed=100)
X, y = data.x, data.training_labels
table = pd.DataFrame(data.u, columns=["depth", "hour"])
X_labelled, y_labelled, u_labelled = X[data.source], y[data.source], table[data.source]
"""
PATIENTS = """
import numpy as np

random = np.random.default_rng(100)
for name, known in (("patients", 50), ("new-patients", 0)):
    with open(f"{name}.csv", "w") as file:
        file.write("age,weight,pulse,outcome\\n")
        for age in random.uniform(18, 90, 500).round(1):
            ill = random.random() < 0.5
            weight, pulse = random.normal([60 + age / 4, 75 + 9 * ill]).round(1)
            outcome = ["no", "yes"][ill] if age < known else ""
            file.write(f"{age},{weight},{pulse},{outcome}\\n")
"""
FRAME = """
import pandas as pd

frame, new_frame = pd.read_csv("patients.csv"), pd.read_csv("new-patients.csv")
"""
RUN = """
from cida.cli import main

main("{}".split())
"""
FIT = PATIENTS + RUN.format("fit patients.csv --label outcome --index age --out runs/patients")
DEMO = RUN.format("demo --methods source-only default --out runs/circle")
GIVEN = {
    "README.md": {
        "from cida import CIDAClassifier": CIRCLE,
        "model = CIDAClassifier()\nmodel.fit(frame": PATIENTS + FRAME,
        "from cida import CIDARegressor": TWO_COLUMNS,
        "cida fit patients.csv": PATIENTS,
    },
    "export.md": {"pip install": FIT},
    "report.md": {"cida demo": DEMO},
}
README_NOT_RUN = {
    "make ": "makes an environment of its own",
    "cida fit sensors.csv": "runs in docs/own-data.md, the same lines",
}
INSTALLS = {"pip"}  # passed over where other commands follow: tests have all extras


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    kind: str
    code: str
    word: str = ""
    more: str = ""

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def reason(self) -> str:
        """Why it is not run; empty where it is."""
        if self.word == "not run":
            return self.more
        if self.page.name == "README.md":
            begins = (why for word, why in README_NOT_RUN.items() if self.code.startswith(word))
            return next(begins, "")
        return ""

    @property
    def commands(self) -> list[list[str]]:
        """The words of each command of a shell block."""
        code = self.code.replace("\\\n", " ")
        for name, value in re.findall(r"^for (\w+) in (\S+)", code, re.MULTILINE):
            code = code.replace(f"${name}", value)
        lines = code.splitlines()
        if self.kind == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return [words for line in lines if (words := shlex.split(line, comments=True))]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page from top to bottom; a setup is one too."""
    text, found, above = page.read_text(), [], None
    for part in PARTS.finditer(text):
        line = text.count("\n", 0, part.start()) + 1
        if part["comment"] is not None:
            above = WORDS.match(part[0])
            end = part.end()
            if above and above["word"] == "setup":
                found.append(Block(page, line, "python", above["more"], "setup"))
            continue
        near = above is not None and text[end : part.start()].strip() == ""
        word, more = (above["word"], above["more"].strip()) if near else ("", "")
        found.append(
            Block(page, line, part["kind"].strip().split(" ")[0], part["code"], word, more)
        )
        above = None
    return found


def ids(page: Path) -> str:
    return str(page.relative_to(ROOT))


# --- running a page ----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A fresh working folder; the state of the process is as before afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("CIDA_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("MAX_STEPS", "FEW_ROWS_STEPS", "MIN_LINEAR_STEPS", "MIN_PLAIN_STEPS"):
        monkeypatch.setattr(policy, name, FEW_STEPS)
    known = set(sys.modules)
    mpl.use("agg")
    with seeded(100), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of games that are over before they have begun
        yield tmp_path
    for name in set(sys.modules) - known:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def run_python(block: Block, names: dict) -> None:
    if ">>>" in block.code:
        test = doctest.DocTestParser().get_doctest(block.code, names, block.where, None, block.line)
        flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        doctest.DebugRunner(optionflags=flags).run(test, clear_globs=False)
        names.update(test.globs)
        return
    lines = "\n" * block.line + block.code  # so that a traceback has the line of the page
    exec(compile(lines, block.where, "exec"), names)


def run_shell(block: Block) -> None:
    assert {words[0] for words in block.commands} - INSTALLS, f"{block.where} only installs; say so"
    for program, *words in block.commands:
        if program in INSTALLS:
            continue
        if program == "cida":
            assert main(words) == 0, f"{block.where}: cida {shlex.join(words)}"
        elif program == "python" and words[0].endswith(".py"):
            script = words[0] if Path(words[0]).exists() else str(ROOT / words[0])
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sys, "argv", words)
                runpy.run_path(script, run_name="__main__")
        else:
            pytest.fail(f"{block.where}: {program} is not run here; say why: <!-- not run: ... -->")


def same_words(shown: str, printed: str) -> bool:
    """Whether it is what was printed, line ends aside; `...` is anything.

    Numbers may be off by a little: another processor rounds otherwise, and training goes on so.
    """
    figures = [list(map(float, FIGURE.findall(text))) for text in (shown, printed)]
    close = len(figures[0]) == len(figures[1]) and figures[0] == pytest.approx(figures[1], abs=0.03)
    words = (" ".join(FIGURE.sub("0.0", text).split()) for text in (shown, printed))
    return doctest.OutputChecker().check_output(*words, doctest.ELLIPSIS) and close


def test_output_is_compared_word_by_word_and_numbers_nearly():
    assert same_words("adapted:\n0.95", "adapted: 0.96\n")
    assert same_words("found 3 of ... rows", "found 3 of 1,500 rows")
    assert not same_words("adapted: 0.95", "adapted: 0.85")
    assert not same_words("adapted: 0.95", "plain: 0.95")
    assert not same_words("adapted: 0.95", "")


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_the_blocks_of_a_page_run_from_top_to_bottom(page, folder):
    names, printed = {"__name__": "__page__"}, ""
    for block in blocks(page):
        if block.word == "output":
            assert same_words(block.code, printed), f"{block.where} shows other words:\n{printed}"
        if block.reason or block.kind in SHOWN:
            continue
        for begins, code in GIVEN.get(page.name, {}).items():
            if block.code.startswith(begins):
                exec(code, names)
        if block.word == "file":
            Path(block.more).write_text(block.code)
            continue
        box = io.StringIO()
        with contextlib.redirect_stdout(box):
            run_shell(block) if block.kind in SHELL else run_python(block, names)
        printed = box.getvalue() if block.word != "setup" else printed


# --- what is said of blocks ----------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_a_fence_says_what_it_holds_and_a_block_that_is_not_run_why(page):
    for block in blocks(page):
        assert block.kind in PYTHON | SHELL | SHOWN, f"{block.where}: ```{block.kind}"
        if block.word == "not run":
            assert block.kind in PYTHON | SHELL, f"{block.where} is never run; no reason is needed"
            assert len(block.reason.split()) >= 2, f"{block.where}: a reason is a few words"


def commands():
    """The class of every command, those of groups included."""
    for entry_point in find_commands().values():
        command = entry_point.load()
        members = get_args(get_type_hints(command).get("command"))
        yield from members or [command]


def only_check(command, console):
    """In the place of `run`: methods, presets and tasks are known, and nothing is done."""
    if isinstance(command, Reproduce):
        command = ReproduceRun(**vars(command))
    getattr(command, "_check", bool)()
    return 0


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_every_line_of_cida_is_one_that_the_command_line_reads(page, folder, monkeypatch, capsys):
    for command in commands():
        monkeypatch.setattr(command, "run", only_check)
    for block in blocks(page):
        for words in block.commands if block.kind in SHELL else ():
            if "cida" in words:
                words = words[words.index("cida") + 1 :]
                assert main(words) == 0, f"{block.where}: {capsys.readouterr().err}"


def test_how_many_blocks_run_and_why_the_others_do_not(capsys):
    code = [b for page in PAGES for b in blocks(page) if b.kind in PYTHON | SHELL]
    code = [block for block in code if block.word != "setup"]
    idle = [block for block in code if block.reason]
    lines = [f"\n{len(code)} blocks of code in {len(PAGES)} pages, {len(idle)} of them not run:"]
    for reason in sorted({block.reason for block in idle}):
        places = [block.where for block in idle if block.reason == reason]
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        lines.append(f"  {reason}: {', '.join(places[:3])}{more}")
    with capsys.disabled():
        sys.stdout.write("\n".join(lines) + "\n")
    python = [block for block in code if block.kind in PYTHON]
    assert sum(bool(block.reason) for block in python) <= len(python) / 10


def test_links_inside_the_repository_lead_somewhere():
    """Files and, in Markdown, headings: as GitHub has them."""
    for page in PAGES:
        text = re.sub(r"^(`{3,}).*?^\1", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if link.startswith(("http", "mailto")):
                continue
            name, _, heading = link.partition("#")
            file = Path(os.path.normpath(page.parent / name)) if name else page
            assert file.exists(), f"{page.relative_to(ROOT)}: {link}"
            if heading:
                assert heading in anchors(file), f"{page.relative_to(ROOT)}: {link}"


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {words.strip().replace(" ", "-") for words in kept}
