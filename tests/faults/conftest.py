"""The harness beside the tests is a module of its own, to be run alone."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
