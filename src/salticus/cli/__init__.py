"""The command line: wires parts together, holds no logic."""

from __future__ import annotations

import sys


def main() -> None:
    """Run `salticus`; our own errors become one line and exit code 2."""
    from salticus.cli.app import app
    from salticus.errors import SalticusError

    try:
        app()
    except SalticusError as error:
        sys.stderr.write(f"salticus: {error}\n")
        sys.exit(2)
