"""Split a data set by routed difficulty: `python split_test_data.py --input RUN`."""

import sys

from mdagents.data_tools.subset import split_main

if __name__ == "__main__":
    sys.exit(split_main(sys.argv[1:]))
