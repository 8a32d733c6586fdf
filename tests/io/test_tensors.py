"""Model files: tensors with a JSON header, checked when read."""

import json
import os
import pickle
import stat

import pytest
import torch
from safetensors.torch import save_file

from cida.io import files
from cida.io.files import write_atomically
from cida.io.tensors import MODEL_FORMAT_VERSION, ModelFileError, read_model_file, write_model_file


def some_tensors():
    return {
        "encoder.weight": torch.randn(3, 4),
        "index": torch.tensor([1.7e9 + 0.1], dtype=torch.float64),
        "count": torch.tensor(5),
        "turned": torch.arange(6).reshape(2, 3).T,
    }


HEADER = {"cida_version": "0.1", "classes": ["a", "ü"], "steps": 3}


def test_a_model_file_gives_back_its_tensors_and_header(tmp_path):
    tensors = some_tensors()
    write_model_file(tmp_path / "model", tensors, HEADER)
    back, header = read_model_file(str(tmp_path / "model"))
    assert header == {"format": MODEL_FORMAT_VERSION, **HEADER}
    assert back.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert back[name].dtype == tensor.dtype
        assert torch.equal(back[name], tensor)


def test_a_model_file_makes_its_folder(tmp_path):
    write_model_file(tmp_path / "a" / "b" / "model", {}, HEADER)
    assert read_model_file(tmp_path / "a" / "b" / "model") == (
        {},
        {"format": MODEL_FORMAT_VERSION, **HEADER},
    )


def test_tensors_that_share_their_memory_can_be_written(tmp_path):
    # An encoder with tied weights has one tensor under two names.
    tied = torch.randn(3, 3)
    write_model_file(tmp_path / "model", {"first": tied, "second": tied}, HEADER)
    back, _ = read_model_file(tmp_path / "model")
    assert torch.equal(back["first"], tied)
    assert torch.equal(back["second"], tied)


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "model"
    write_model_file(path, some_tensors(), HEADER)
    return path


@pytest.mark.parametrize("kept", [0, 1, 7, 8, 30, -1])
def test_a_file_cut_short_is_refused(written, kept):
    written.write_bytes(written.read_bytes()[:kept])
    with pytest.raises(ModelFileError, match=r"is damaged or cut short .*save the model again"):
        read_model_file(written)


@pytest.mark.parametrize("garbage", [b"hello, world\n" * 50, b"\x00" * 200, b"\xff" * 200, b"{}"])
def test_garbage_is_refused(tmp_path, garbage):
    (tmp_path / "model").write_bytes(garbage)
    with pytest.raises(ModelFileError, match="is damaged or cut short"):
        read_model_file(tmp_path / "model")


class Burglar:
    opened = False

    def __reduce__(self):
        return setattr, (Burglar, "opened", True)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_refused_unopened(tmp_path, protocol):
    (tmp_path / "model").write_bytes(pickle.dumps(Burglar(), protocol=protocol))
    with pytest.raises(ModelFileError) as caught:
        read_model_file(tmp_path / "model")
    assert not Burglar.opened
    if protocol >= 2:  # older ones have no mark of their own and count as damaged
        assert "is a pickle" in str(caught.value)
        assert "cida reads only files written by its own save()" in str(caught.value)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_torch_save_archive_is_refused(tmp_path, zipped):
    path = tmp_path / "model"
    torch.save(some_tensors(), path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(ModelFileError, match=r"is a pickle \(or a torch.save archive\)"):
        read_model_file(path)


def test_a_file_of_another_format_is_refused_with_the_version_that_wrote_it(tmp_path):
    write_model_file(tmp_path / "model", {}, {"format": 99, "cida_version": "7.3"})
    sentence = rf"format 99 .* reads format {MODEL_FORMAT_VERSION}; .* by cida 7\.3: inst"
    with pytest.raises(ModelFileError, match=sentence):
        read_model_file(tmp_path / "model")


@pytest.mark.parametrize(
    "metadata", [None, {"other": "x"}, {"cida": "{"}, {"cida": "[1]"}, {"cida": "{}"}]
)
def test_a_safetensors_file_that_is_not_ours_is_refused(tmp_path, metadata):
    save_file({"a": torch.zeros(2)}, tmp_path / "model", metadata=metadata)
    with pytest.raises(ModelFileError, match="is a safetensors file without cida's header"):
        read_model_file(tmp_path / "model")


@pytest.mark.parametrize("place", ["nowhere", "."])
def test_a_path_without_a_file_is_an_error_that_names_it(tmp_path, place):
    with pytest.raises(FileNotFoundError, match=r"there is no model file at .*; check the path"):
        read_model_file(tmp_path / place)


def test_a_header_that_json_cannot_hold_is_refused_before_anything_is_written(written):
    before = written.read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        write_model_file(written, {}, {"scale": float("nan")})
    assert written.read_bytes() == before


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(written, monkeypatch, step):
    before = written.read_bytes()

    def full(*arguments, **options):
        raise OSError("disk full")

    monkeypatch.setattr(files.os, step, full)
    with pytest.raises(OSError, match="disk full"):
        write_model_file(written, some_tensors(), HEADER)
    monkeypatch.undo()
    assert written.read_bytes() == before
    assert [path.name for path in written.parent.iterdir()] == ["model"]


def test_a_write_replaces_the_file_and_leaves_no_temporary_one(written):
    write_atomically(written, b"new")
    assert written.read_bytes() == b"new"
    assert [path.name for path in written.parent.iterdir()] == ["model"]


@pytest.mark.skipif(os.name == "nt", reason="there are no such permissions on Windows")
def test_a_written_file_has_the_permissions_the_user_asks_for(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_the_header_is_plain_json_that_any_tool_can_read(written):
    content = written.read_bytes()
    length = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + length])["__metadata__"]
    assert json.loads(metadata["cida"])["classes"] == ["a", "ü"]


def test_of_a_long_cause_the_beginning_is_told(tmp_path):
    """safetensors quotes what it could not read, which may be the whole file."""
    header = json.dumps({"__metadata__": " ".join(["word"] * 5000)}).encode()
    path = tmp_path / "model"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ModelFileError, match="damaged or cut short") as caught:
        read_model_file(path)
    assert len(str(caught.value)) < 500
