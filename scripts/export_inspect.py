"""Write a run as a log of Inspect: `python scripts/export_inspect.py output/NAME`."""

import sys
from pathlib import Path

# `python scripts/export_inspect.py` puts scripts/, not the repository, on the path.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mdagents.export.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
