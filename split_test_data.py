"""Split a data set by routed difficulty: `python split_test_data.py --input RUN`."""

import sys

from mdagents.scoring.split import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], program="python split_test_data.py"))
