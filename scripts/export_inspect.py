"""`mdagents export` in a clone: write a run as a log of Inspect."""

import sys

from mdagents.export.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], program="python scripts/export_inspect.py"))
