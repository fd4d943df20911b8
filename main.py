"""Run a benchmark: `python main.py --dataset medqa --difficulty adaptive`."""

import gc
import signal
import sys

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while modules load: no traceback

if __name__ == "__main__":
    gc.disable()  # modules are no garbage; `main` enables it again

from mdagents.runs.options import env_flag
from mdagents.runs.program import main

# Leave out questions that are routed to a level: set True here, or SKIP_BASIC=1 in the
# environment, or give --skip basic.
SKIP_BASIC = env_flag("SKIP_BASIC")
SKIP_INTERMEDIATE = env_flag("SKIP_INTERMEDIATE")
SKIP_ADVANCED = env_flag("SKIP_ADVANCED")

# Print after each debate who wrote to whom.
SHOW_INTERACTION_TABLE = env_flag("SHOW_INTERACTION_TABLE")

if __name__ == "__main__":
    skip = {"basic": SKIP_BASIC, "intermediate": SKIP_INTERMEDIATE, "advanced": SKIP_ADVANCED}
    left_out = [level for level, is_left_out in skip.items() if is_left_out]
    sys.exit(main(sys.argv[1:], skip=left_out, show_interaction_table=SHOW_INTERACTION_TABLE))
