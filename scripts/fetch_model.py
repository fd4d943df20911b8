"""Fetch the weights of the embedded model into the user's cache folder (98 MB, once)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# `python scripts/fetch_model.py` puts scripts/, not the repository, on the path.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from infra.config import parse_environment, read_variables
from infra.errors import ConfigError
from infra.local_model import weights


def main() -> int:
    """Fetch if needed, print the path of the file, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache-dir", type=Path, metavar="DIR", help="[the user's cache folder]")
    options = parser.parse_args()
    try:
        cache_dir = options.cache_dir or parse_environment(read_variables()).cache_dir
        print(weights.require(cache_dir))
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
