"""`mdagents data download` in a clone: fetch the real files of a data set."""

import sys

from mdagents.data_tools.download import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], program="python scripts/download_data.py"))
