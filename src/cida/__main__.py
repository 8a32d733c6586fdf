"""``python -m cida`` is the same command as ``cida``."""

import sys

from cida.cli import main

if __name__ == "__main__":
    sys.exit(main())
