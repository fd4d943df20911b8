"""Compare methods, models and data sets: `python study.py study.yaml`."""

import signal
import sys

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while modules load: no traceback

from mdagents.studies.program import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
