"""Entry point of `python -m demos.document_assistant`."""

from __future__ import annotations

import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while modules load: no traceback

import sys

from demos.document_assistant.dialogue import main

if __name__ == "__main__":
    sys.exit(main())
