"""One run, from the user's request to its files.

What calls what, for one question:

main.py
program.py     flags → RunConfig (flags, options, config); prints results, exit status
├─ plan.py         what is to be done: data set, items, models, budget, name of the run
└─ session.py      opens models, store, ledger and display (banner, recorder); closes them
   └─ engines/     where: local.py in this process, distributed.py in workers
      └─ runner.py     a Case for each question; observers.py: its trace, EXAID, feed
         └─ solver.py      how: the router and its team, or a method of `mdagents.teams`
            └─ mdagents.teams, then mdagents.agents.agent    one turn: prompt, reply
               └─ budget.py    the limits of question, run and study
                  └─ mdagents_llm      the layers around a model (`llm_registry`), its SDK

What an agent says takes this way, while it is said:

mdagents.agents.streaming    the free text of a reply, out of its JSON
└─ exaid_core.trace.bus          an event for each piece
   ├─ engines/observers.py           the trace file, display and live view
   └─ exaid_core.exaid               EXAID: segmenter, worker, decisions
      └─ engines/observers.py            `Summarised`, for display and live view

`recorder.py` writes the record of a question as soon as it is decided; `exaid_queue.py` then lets
EXAID finish.
"""
