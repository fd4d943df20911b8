"""Score a run: `python evaluate_text_output.py` writes a CSV and prints a table."""

import sys

# Which file to score and where to write the CSV. Empty: the newest run in output/, and
# evaluation/{the same name}.csv. --input and --output come before these.
input_filename = ""
output_filename = ""

if __name__ == "__main__":
    from mdagents.cli.score import main  # here: worker processes load this file as well

    sys.exit(main(sys.argv[1:], input_filename=input_filename, output_filename=output_filename))
