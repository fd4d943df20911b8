"""Watch runs in a browser: `python view.py` shows those in output/."""

import signal
import sys

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while modules load: no traceback

from mdagents.view.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
