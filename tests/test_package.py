"""What the package says about itself."""

import importlib
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

import cida

ROOT = Path(__file__).parent.parent
MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(cida.__path__, "cida.")
    if not name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_every_module_opens_with_a_docstring_and_keeps_its_all(name):
    module = importlib.import_module(name)
    assert module.__doc__
    for public in getattr(module, "__all__", []):
        assert hasattr(module, public)


def test_the_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {cida.__version__}\n" in citation
    assert f"## {cida.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert re.fullmatch(r"\d+\.\d+\.\d+", cida.__version__)


def test_torch_is_pinned_where_it_is_installed_and_ranged_where_it_is_required():
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text().splitlines()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert not [need for need in project["dependencies"] if "==" in need]


def test_every_link_between_pages_leads_somewhere_and_nothing_is_left_to_fill_in():
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")):
        text = page.read_text()
        assert "@@" not in text
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_package_is_typed():
    assert (ROOT / "src/cida/py.typed").is_file()


def test_files_stay_short():
    for folder in ("src", "tests"):
        for file in (ROOT / folder).rglob("*.py"):
            assert len(file.read_text().splitlines()) <= 400, file


def test_nothing_prints_outside_the_command_line():
    for file in (ROOT / "src").rglob("*.py"):
        assert not re.search(r"^\s*print\(", file.read_text(), re.M), file
