"""One run, from the user's request to its files.

main.py ─ program.py     flags → RunConfig (flags, options, config); prints results, exit status
session.py     opens models, store, ledger and display; closes them
plan.py        what is to be done: data set, items, models, budget, name of the run
engines/       where: local.py in this process, distributed.py on a cluster
runner.py      a Case for each question; observers.py: its trace, EXAID, feed
solver.py      how: the router and its team, or a method of `mdagents.teams`
recorder.py    takes each decision: store, totals, display, live feed
mdagents.agents.agent    one turn: prompt, reply
mdagents_llm             Limited → Structured → Cache → Retry → Gate → Attempt → provider
"""
