"""A small file in the cache in place of a data set, or the real one where it is there."""

import hashlib
from dataclasses import replace

import pytest

from cida.experiments.fetch import RemoteFile


@pytest.fixture
def small(tmp_path, monkeypatch):
    """The data set with a hand-written file, verified, in a cache of its own."""
    monkeypatch.setenv("CIDA_DATA_HOME", str(tmp_path))

    def put(dataset, content):
        (file,) = dataset.files
        md5 = hashlib.md5(content.encode()).hexdigest()
        made = replace(dataset, files=(RemoteFile(file.name, len(content), md5),), sources=())
        made.folder.mkdir(exist_ok=True)
        (made.folder / file.name).write_text(content)
        return made

    return put


@pytest.fixture
def real():
    """The path of the real file, if it is in the cache."""

    def path(dataset):
        if dataset.find_faults():
            pytest.skip(f"not in the cache: cida data fetch {dataset.name}")
        return dataset.folder / dataset.files[0].name

    return path
