"""A hundred wrong files for every loader; `make fuzz` gives them ten thousand each."""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
LINE = re.compile(r"^(\S.*?) +(\d+) +(\d+) +(\d+) +([\d.]+) +(\d+) +\d+ +slowest", re.M)


def test_every_wrong_file_is_read_or_refused_in_words(tmp_path):
    command = [sys.executable, str(HERE), "--inputs", "100", "--keep", str(tmp_path / "kept")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ}, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = LINE.findall(done.stdout)
    assert len(lines) == 10
    for name, inputs, accepted, refused, slowest, failures in lines:
        assert (int(inputs), int(failures)) == (100, 0), name
        assert int(accepted) + int(refused) == 100
        assert float(slowest) < 5
    assert not (tmp_path / "kept").exists()
    assert sum(int(line[2]) for line in lines) > 100, "most inputs must not be too wrong to matter"
