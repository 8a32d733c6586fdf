"""Files and folders that are whole or not there at all."""

import pytest

from cida.io.files import (
    LockedError,
    atomic_new_folder,
    atomic_replace,
    exclusive_lock,
    write_atomically,
)


def fill(path, fails=False):
    with atomic_new_folder(path) as room:
        (room / "a").write_text("a")
        if fails:
            raise RuntimeError("half way")


def test_a_new_folder_appears_when_it_is_whole(tmp_path):
    target = tmp_path / "made/for/it"
    with atomic_new_folder(target) as room:
        assert room.is_dir()
        assert not target.exists()
        (room / "a").write_text("a")
    assert [path.name for path in target.iterdir()] == ["a"]
    assert [path.name for path in target.parent.iterdir()] == ["it"]
    usual = tmp_path / "usual"
    usual.mkdir()
    assert target.stat().st_mode == usual.stat().st_mode


def test_a_new_folder_may_take_the_place_of_an_empty_one_only(tmp_path):
    (tmp_path / "empty").mkdir()
    fill(tmp_path / "empty")
    assert (tmp_path / "empty/a").read_text() == "a"
    with pytest.raises(OSError, match="not empty"):
        fill(tmp_path / "empty")
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_a_folder_that_fails_half_way_leaves_nothing_not_even_above_it(tmp_path):
    with pytest.raises(RuntimeError, match="half way"):
        fill(tmp_path / "made/for/it", fails=True)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_when_the_new_one_is_whole(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with atomic_replace(path) as room:
        room.write_bytes(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_lock_is_exclusive_and_leaves_nothing(tmp_path):
    lock = tmp_path / "made/.lock"
    for _ in range(2):  # the second time as the first
        with exclusive_lock(tmp_path, lock):
            second = exclusive_lock(tmp_path, lock)
            with pytest.raises(LockedError, match="is in use by another cida command"), second:
                pass
            assert lock.exists()
        assert not lock.exists()
