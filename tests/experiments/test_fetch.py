"""Downloads: verified, resumed, refused, and never half-written."""

import gzip
import hashlib
import socket
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from cida.experiments import fetch as module
from cida.experiments.fetch import DownloadError, HttpMirror, RemoteDataset, RemoteFile, gunzip

CONTENT = np.random.default_rng(0).integers(0, 256, 300_000).astype(np.uint8).tobytes()
PACKED = gzip.compress(CONTENT, mtime=0)


def wanted(name="digits", content=CONTENT):
    return RemoteFile(name, len(content), hashlib.md5(content).hexdigest())


class Handler(BaseHTTPRequestHandler):
    """Serves the server's ``files``; ``cuts`` says after how many bytes the next answers end."""

    def log_message(self, *words):
        pass

    def do_GET(self):
        server = self.server
        server.asked.append((self.path, self.headers.get("Range")))
        if server.redirect:
            self.send_response(302)
            self.send_header("Location", server.redirect)
            self.end_headers()
            return
        body = server.files.get(self.path)
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1]) if server.ranges else 0
        if body is None or (start and start >= len(body)):
            self.send_error(404 if body is None else 416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        cut = server.cuts.pop(0) if server.cuts else len(body)
        self.wfile.write(body[start : start + cut])


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setenv("CIDA_DATA_HOME", str(tmp_path))
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.files = {"/digits.gz": PACKED}
    made.asked, made.cuts, made.ranges, made.redirect = [], [], True, None
    thread = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    made.base = f"http://127.0.0.1:{made.server_port}/"
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def dataset(*bases, files=None):
    files = files or (wanted(),)
    return RemoteDataset(
        "some", files, tuple(HttpMirror(base) for base in bases), ", or do without"
    )


def left(tmp_path):
    return sorted(path.name for path in (tmp_path / "some").iterdir())


def test_a_file_is_fetched_verified_and_kept_with_progress(server, tmp_path):
    seen = []
    origin = dataset(server.base).fetch(lambda done, total: seen.append((done, total)))
    assert origin == {"digits": f"127.0.0.1:{server.server_port}"}
    assert (tmp_path / "some/digits").read_bytes() == CONTENT
    assert left(tmp_path) == ["digits"]
    assert seen[-1] == (len(PACKED), len(PACKED))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len(seen) > 2
    assert dataset(server.base).fetch() == {}
    assert len(server.asked) == 1


def test_a_cut_connection_is_resumed_where_it_broke_off(server, tmp_path):
    server.cuts = [102_400, 51_200]  # pooch writes kilobytes
    dataset(server.base).fetch()
    assert [span for _, span in server.asked] == [None, "bytes=102400-", "bytes=153600-"]
    assert (tmp_path / "some/digits").read_bytes() == CONTENT
    assert left(tmp_path) == ["digits"]


def test_the_next_call_resumes_the_part_that_the_last_one_left(server, tmp_path):
    server.cuts = [102_400, 1024, 1024]
    with pytest.raises(DownloadError, match="broke off 3 times"):
        dataset(server.base).fetch()
    (part,) = (tmp_path / "some").iterdir()
    assert part.name.endswith(".part")
    assert part.read_bytes() == PACKED[:104_448]
    server.asked.clear()
    dataset(server.base).fetch()
    assert [span for _, span in server.asked] == ["bytes=104448-"]
    assert left(tmp_path) == ["digits"]


def test_a_server_that_ignores_ranges_sends_it_all_again(server, tmp_path):
    server.cuts, server.ranges = [102_400], False
    dataset(server.base).fetch()
    assert [span for _, span in server.asked] == [None, "bytes=102400-"]
    assert (tmp_path / "some/digits").read_bytes() == CONTENT


@pytest.mark.parametrize("old", [b"rubbish", PACKED + b"behind the end", PACKED])
def test_a_part_that_does_not_fit_is_fetched_from_the_start(server, tmp_path, old):
    (tmp_path / "some").mkdir()
    (tmp_path / f"some/.digits.gz.127.0.0.1-{server.server_port}.part").write_bytes(old)
    dataset(server.base).fetch()
    assert (tmp_path / "some/digits").read_bytes() == CONTENT
    assert left(tmp_path) == ["digits"]


def test_a_wrong_checksum_is_refused_and_nothing_of_it_is_kept(server, tmp_path):
    server.files["/digits.gz"] = gzip.compress(CONTENT[:-1] + b"?")
    with pytest.raises(DownloadError, match=r"digits .* has a wrong checksum"):
        dataset(server.base).fetch()
    assert left(tmp_path) == []


def test_the_next_source_gives_what_the_first_lacks(server, tmp_path):
    more = b"more"
    server.files |= {"/b/more.gz": gzip.compress(more), "/b/digits.gz": b"not asked for"}
    files = (wanted(), wanted("more", more))
    dataset(server.base, server.base + "b/", files=files).fetch()
    assert [path for path, _ in server.asked] == ["/digits.gz", "/more.gz", "/b/more.gz"]
    assert left(tmp_path) == ["digits", "more"]


def test_the_part_of_a_source_that_broke_off_goes_when_another_delivers(server, tmp_path):
    server.cuts = [1024, 1024, 1024]
    other = f"http://localhost:{server.server_port}/"
    assert dataset(server.base, other).fetch() == {"digits": f"localhost:{server.server_port}"}
    assert left(tmp_path) == ["digits"]


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (gzip.compress(bytes(50_000_000)), "unpacked it is longer than 300000 bytes"),
        (bytes(1_000_000), "longer than its 301024 bytes at most"),
        (PACKED[:-100], "cannot be unpacked"),
    ],
)
def test_bombs_endless_and_broken_files_are_refused(server, tmp_path, sent, words):
    server.files["/digits.gz"] = sent
    with pytest.raises(DownloadError, match=words):
        dataset(server.base).fetch()
    assert left(tmp_path) == []


def test_a_bomb_is_not_unpacked_beyond_the_limit():
    bomb = gzip.compress(bytes(50_000_000))
    tracemalloc.start()
    with pytest.raises(ValueError, match="longer than 1000 bytes"):
        gunzip(bomb, 1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


@pytest.mark.parametrize("base", ["http://example.org/", "file:///etc/", "ftp://127.0.0.1/"])
def test_only_https_is_opened(base, tmp_path, monkeypatch):
    monkeypatch.setenv("CIDA_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("pooch.HTTPDownloader", lambda **_: pytest.fail("it was opened"))
    with pytest.raises(DownloadError, match="is not https"):
        dataset(base).fetch()


@pytest.mark.parametrize("goal", ["http://127.0.0.1:1/x", "http://example.org/x", "ftp://a/x"])
def test_a_redirect_away_from_https_is_refused(server, goal):
    server.redirect = goal
    with pytest.raises(DownloadError, match=r"redirected to .*, which is not https"):
        dataset(server.base).fetch()
    assert len(server.asked) == 1


def test_a_host_that_does_not_answer_costs_one_short_wait(monkeypatch, tmp_path):
    monkeypatch.setenv("CIDA_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(module, "RESPONSE_TIMEOUT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        base = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        start = time.monotonic()
        with pytest.raises(DownloadError, match="timed out"):
            dataset(base, files=(wanted(), wanted("more"))).fetch()
        assert time.monotonic() - start < 1


def test_when_nothing_can_be_reached_one_sentence_says_what_was_tried_and_what_to_do(
    tmp_path, server
):
    server.files.clear()
    closed = "http://127.0.0.1:9/"
    with pytest.raises(DownloadError) as caught:
        dataset(server.base, closed).fetch()
    host = f"127.0.0.1:{server.server_port}"
    assert str(caught.value) == (
        f"some could not be fetched ({host}: Not Found; 127.0.0.1:9: Connection refused): "
        f"put digits, unpacked, into {tmp_path}/some yourself, or do without."
    )
    assert isinstance(caught.value, OSError)
    assert left(tmp_path) == []


def test_a_damaged_file_is_named_and_fetched_again(server, tmp_path):
    dataset(server.base).fetch()
    (tmp_path / "some/digits").write_bytes(CONTENT[:10])
    with pytest.warns(UserWarning, match=r"digits \(10 of 300000 bytes\).*fetched again"):
        dataset(server.base).fetch()
    assert (tmp_path / "some/digits").read_bytes() == CONTENT


def test_many_at_once_all_succeed(server, tmp_path):
    server.cuts = [51_200] * 2
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: dataset(server.base).fetch(), range(6)))
    assert (tmp_path / "some/digits").read_bytes() == CONTENT
    assert left(tmp_path) == ["digits"]
    assert len(server.asked) == 3  # by one of them: cut off twice, then whole


def test_without_pooch_the_other_sources_are_tried(server, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(DownloadError, match=r"pooch is not installed; pip install .cida\[exp"):
        dataset(server.base).fetch()
    assert server.asked == []
