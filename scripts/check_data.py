"""`mdagents data check` in a clone: what is wrong with the questions of a data set."""

import sys

from mdagents.data_tools.check import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], program="python scripts/check_data.py"))
