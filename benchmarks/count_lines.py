"""``python -m benchmarks.count_lines``: lines of Python in the package, without docstrings.

A line counts unless it is part of a docstring or of another string that stands alone as a
statement; comments and blank lines count. The library, its adaptive estimators and its
experiments have a budget each.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

__all__ = [
    "MAX_ADAPTIVE_LINES",
    "MAX_EXPERIMENT_LINES",
    "MAX_LIBRARY_LINES",
    "LineCount",
    "adaptive_files",
    "count_lines",
    "experiment_files",
    "find_long_files",
    "library_files",
    "main",
]

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "cida"
MAX_FILE_LINES = 400  # of one file, all lines
MAX_LIBRARY_LINES = 20_000  # of all files but the next two groups, without docstrings
MAX_ADAPTIVE_LINES = 1_300  # of the adaptive estimators, which came after the library's budget
ADAPTIVE_STEMS = ("adaptive", "adaptive_base", "transformers", "threads")
MAX_EXPERIMENT_LINES = 6_500


@dataclass(frozen=True)
class LineCount:
    """Lines of some files: all of them, and those that are no docstring."""

    n_total: int
    n_code: int


def experiment_files() -> list[Path]:
    """The Python files of cida.experiments."""
    return sorted((PACKAGE / "experiments").rglob("*.py"))


def adaptive_files() -> list[Path]:
    """The Python files of the adaptive estimators, and of what they brought."""
    files = [*PACKAGE.glob("committee/*.py"), *PACKAGE.glob("*/*.py"), *PACKAGE.glob("*.py")]
    return sorted({p for p in files if p.parent.name == "committee" or p.stem in ADAPTIVE_STEMS})


def library_files() -> list[Path]:
    """All Python files of the package but the experiments."""
    return sorted({*PACKAGE.rglob("*.py")} - {*experiment_files()})


def count_lines(files: Iterable[Path]) -> LineCount:
    """Counts the lines of these files."""
    n_total = n_docstring = 0
    for path in files:
        text = path.read_text(encoding="utf-8")
        n_total += len(text.splitlines())
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                n_docstring += node.end_lineno - node.lineno + 1  # type: ignore[operator]
    return LineCount(n_total, n_total - n_docstring)


def find_long_files() -> dict[str, int]:
    """Files of the package above 400 lines, by their path in it, with their lines."""
    lengths = {
        str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines())
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    return {name: length for name, length in lengths.items() if length > MAX_FILE_LINES}


def main() -> int:
    """Prints the counts; exit code 1 where a budget or the limit of a file is exceeded."""
    is_within = True
    parts = {
        "library": (sorted({*library_files()} - {*adaptive_files()}), MAX_LIBRARY_LINES, PACKAGE),
        "adaptive estimators": (adaptive_files(), MAX_ADAPTIVE_LINES, PACKAGE),
        "experiments": (experiment_files(), MAX_EXPERIMENT_LINES, PACKAGE / "experiments"),
    }
    for name, (files, max_lines, root) in parts.items():
        count = count_lines(files)
        is_within &= count.n_code <= max_lines
        sys.stdout.write(
            f"{name}: {count.n_code:,} lines without docstrings (budget {max_lines:,}), "
            f"{count.n_total:,} with, {len(files)} files\n"
        )
        by_folder = groupby(files, key=lambda path: path.relative_to(root).parts[0])
        for folder, members in by_folder:
            sys.stdout.write(f"  {count_lines(members).n_code:6,}  {folder}\n")
    for name, length in find_long_files().items():
        is_within = False
        sys.stdout.write(f"{name}: {length} lines; a file has at most {MAX_FILE_LINES}.\n")
    return 0 if is_within else 1


if __name__ == "__main__":
    sys.exit(main())
