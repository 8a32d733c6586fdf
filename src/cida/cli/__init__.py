"""The command line: ``cida COMMAND``. One module a command; none imports torch before it runs."""

from cida.cli.app import main

__all__ = ["main"]
