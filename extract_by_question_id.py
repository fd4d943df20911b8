"""Pick questions by id: `python extract_by_question_id.py --dataset medqa 12 57`."""

import sys

from mdagents.cli.dataset_parts import extract

if __name__ == "__main__":
    sys.exit(extract(sys.argv[1:], program="python extract_by_question_id.py"))
