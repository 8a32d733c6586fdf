"""``python -m benchmarks``: runs the speed suite."""

import sys

from benchmarks.command import main

if __name__ == "__main__":
    sys.exit(main())
