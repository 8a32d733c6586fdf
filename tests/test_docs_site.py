"""The site builds, warnings as errors, and every page of it is complete without a network."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Built as `make docs` does, of a copy, since the gallery is written beside the pages."""
    room = tmp_path_factory.mktemp("site")
    made = shutil.ignore_patterns("_build", "gallery", "generated")
    shutil.copytree(ROOT / "docs", room / "docs", ignore=made)
    for name in ("examples", "tests"):  # what pages link to
        shutil.copytree(ROOT / name, room / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("CHANGELOG.md", "SECURITY.md"):
        shutil.copy(ROOT / name, room)
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q"]
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    ended = subprocess.run(
        [*build, str(room / "docs"), str(room / "html")],
        capture_output=True,
        text=True,
        env=alone,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return room / "html"


def test_every_page_is_in_the_site_and_can_be_reached(site):
    contents = (site / "index.html").read_text()
    for page in (ROOT / "docs").glob("**/*.md"):
        place = page.relative_to(ROOT / "docs").with_suffix(".html")
        if {"_build", "gallery"} & set(place.parts):
            continue
        assert (site / place).exists(), place
        assert f'href="{place}"' in contents or place.name == "index.html", place


def test_no_page_fetches_anything(site):
    """Scripts, styles, fonts and pictures; links that a reader may follow are another matter."""
    fetched = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=["'](?:https?:)?//""")
    for page in site.glob("**/*.html"):
        assert not fetched.search(page.read_text()), page
    for style in site.glob("**/*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//|@import", style.read_text()), style


def test_every_script_of_the_gallery_drew_something(site):
    scripts = list((ROOT / "examples" / "gallery").glob("plot_*.py"))
    assert len(scripts) >= 4
    for script in scripts:
        assert list((site / "_images").glob(f"sphx_glr_{script.stem}_*.png")), script


def test_formulae_are_set_when_the_site_is_built(site):
    theory = (site / "theory.html").read_text()
    assert theory.count("<math") > 100
    assert "\\frac" not in theory
