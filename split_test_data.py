"""Split a data set by routed difficulty: `python split_test_data.py --input RUN`."""

import sys

from mdagents.cli.dataset_parts import split

if __name__ == "__main__":
    sys.exit(split(sys.argv[1:], program="python split_test_data.py"))
