"""Pick questions by id: `python extract_by_question_id.py --dataset medqa 12 57`."""

import sys

from mdagents.data_tools.subset import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], program="python extract_by_question_id.py"))
