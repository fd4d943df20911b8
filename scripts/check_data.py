"""Look for what is wrong with the questions of a data set: `python scripts/check_data.py medqa`."""

import sys
from pathlib import Path

# `python scripts/check_data.py` puts scripts/, not the repository, on the path.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mdagents.data_tools.check import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
