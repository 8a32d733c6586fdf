"""What no module owns: how long files may be, and that a name means one thing in the package."""

import ast
from collections import defaultdict
from pathlib import Path

from benchmarks.count_lines import (
    MAX_FILE_LINES,
    count_lines,
    experiment_files,
    find_long_files,
    library_files,
)

# Folders of experiments have the same files each; so has every package its __init__ and base.
SHARED_STEMS = {"__init__", "__main__", "base"}
SHARED_EXPERIMENT_STEMS = {"data", "recipes", "figures"}


def _is_of_one_experiment(path: Path) -> bool:
    return path.parent.parent.name == "experiments"


def test_docstrings_do_not_count_and_comments_do(tmp_path):
    file = tmp_path / "a.py"
    file.write_text('"""One.\n\nTwo."""\n\n# three\nx = "four"\n"""Five."""\n')
    count = count_lines([file])
    assert (count.n_total, count.n_code) == (7, 3)


def test_no_file_is_too_long():
    assert find_long_files() == {}, f"more than {MAX_FILE_LINES} lines"


def test_a_module_name_is_used_once():
    by_stem = defaultdict(list)
    for path in library_files() + experiment_files():
        shared = SHARED_STEMS | (SHARED_EXPERIMENT_STEMS if _is_of_one_experiment(path) else set())
        if path.stem not in shared:
            by_stem[path.stem].append(str(path))
    assert {stem: paths for stem, paths in by_stem.items() if len(paths) > 1} == {}


def test_a_public_class_name_is_used_once():
    by_name = defaultdict(list)
    for path in library_files() + experiment_files():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                by_name[node.name].append(str(path))
    assert {name: paths for name, paths in by_name.items() if len(paths) > 1} == {}
