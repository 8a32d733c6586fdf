"""cida data: fetch and list what is downloaded."""

import hashlib
from dataclasses import dataclass, replace

import pytest

from cida.cli import main
from cida.experiments.fetch import RemoteFile, data_home
from cida.experiments.registry import DATASET_BY_NAME
from cida.experiments.rotating_mnist.mnist import MNIST_DATASET

CONTENT = b"digits"


@dataclass(frozen=True)
class Shelf:
    """A source that has the content at hand, or fails."""

    content: bytes | None = CONTENT
    name: str = "shelf"

    def fetch(self, wanted, folder, progress):
        progress(0, None)
        if self.content is None:
            raise OSError("the shelf is empty")
        for item in wanted:
            progress(len(self.content), len(self.content))
            yield item, self.content


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    monkeypatch.setenv("CIDA_DATA_HOME", str(tmp_path))
    files = tuple(
        RemoteFile(n, len(CONTENT), hashlib.md5(CONTENT).hexdigest()) for n in ("one", "two")
    )

    def put(*sources):
        monkeypatch.setitem(
            DATASET_BY_NAME, "mnist", replace(MNIST_DATASET, files=files, sources=sources)
        )

    put(Shelf())
    return put


def test_fetch_says_where_from_and_ends_with_the_folder(shelf, capsys, tmp_path):
    assert main(["data", "fetch", "mnist"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert "2 of 2 files from shelf, verified" in lines
    assert lines[-2] == str(tmp_path / "mnist")
    assert (tmp_path / "mnist/one").read_bytes() == CONTENT
    assert main(["data", "fetch", "mnist"]) == 0
    assert "all 2 files were in the cache, verified" in capsys.readouterr().out


def test_list_says_what_is_in_the_cache(shelf, capsys, tmp_path):
    assert main(["data", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(DATASET_BY_NAME)
    assert lines[3] == f"mnist  not in the cache  0.0 MB  {tmp_path}/mnist"
    assert lines[0] == f"nhanes  not in the cache  8.2 MB  {tmp_path}/nhanes"
    main(["data", "fetch", "mnist"])
    capsys.readouterr()
    assert main(["data", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3] == f"mnist  in the cache  0.0 MB  {tmp_path}/mnist"
    (tmp_path / "mnist/two").write_bytes(b"x")
    assert main(["data", "list"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[3].startswith("mnist  1 of 2 files in the cache")
    assert "two (1 of 6 bytes) has a wrong checksum" in out


def test_a_damaged_file_is_named_and_mended(shelf, capsys, tmp_path):
    main(["data", "fetch", "mnist"])
    (tmp_path / "mnist/two").write_bytes(b"x")
    capsys.readouterr()
    assert main(["data", "fetch", "mnist"]) == 0
    out = capsys.readouterr().out
    assert "two (1 of 6 bytes) has a wrong checksum" in out
    assert "1 of 2 files from shelf" in out
    assert (tmp_path / "mnist/two").read_bytes() == CONTENT


def test_the_next_source_is_used(shelf, capsys):
    shelf(Shelf(None), Shelf(b"wrong"), Shelf(name="other"))
    assert main(["data", "fetch", "mnist"]) == 0
    assert "2 of 2 files from other" in capsys.readouterr().out


def test_nothing_reachable_is_one_sentence_and_exit_code_1(shelf, capsys, tmp_path):
    shelf(Shelf(None))
    assert main(["data", "fetch", "mnist"]) == 1
    said = capsys.readouterr().err
    assert said == (
        "cida: mnist could not be fetched (shelf: the shelf is empty): put one, two, unpacked, "
        f"into {tmp_path}/mnist yourself, or use rotating-digits, which needs no download.\n"
    )
    assert list((tmp_path / "mnist").iterdir()) == []


def test_an_unknown_name_is_one_sentence_and_exit_code_2(capsys):
    assert main(["data", "fetch", "cifar"]) == 2
    assert capsys.readouterr().err == (
        "cida: NAME is 'cifar'; known data sets are nhanes, king-county, support2, mnist.\n"
    )


def test_the_help_of_fetch_names_every_data_set(capsys):
    assert main(["data", "fetch", "--help"]) == 0
    said = capsys.readouterr().out
    assert [name for name in DATASET_BY_NAME if name not in said] == []


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("CIDA_DATA_HOME", str(tmp_path))
    assert data_home() == tmp_path
    monkeypatch.setenv("CIDA_DATA_HOME", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_home() == tmp_path / "cida"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_home() == tmp_path / ".cache/cida"
