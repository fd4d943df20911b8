"""Entry point of `python -m demos.document_assistant`."""

from __future__ import annotations

import sys

from demos.document_assistant.dialogue import main

if __name__ == "__main__":
    sys.exit(main())
