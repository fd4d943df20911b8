"""Command-line programs of evals: `python -m evals.cli.NAME`."""

import signal
import sys

# `-m` stands there while the modules of the program load.
if sys.argv[:1] == ["-m"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C: no traceback
