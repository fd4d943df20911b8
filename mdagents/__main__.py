"""`python -m mdagents` is the command `mdagents`."""

import sys

from mdagents.cli.commands import main

if __name__ == "__main__":
    sys.exit(main(program="python -m mdagents"))
