"""``python -m session_magics`` is the command line."""

from __future__ import annotations

import sys

from session_magics.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
