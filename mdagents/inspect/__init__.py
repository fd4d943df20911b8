"""Teams in Inspect (https://inspect.aisi.org.uk): tasks, solvers, agents and scorers.

Inspect finds them by the entry point `mdagents`, which imports `mdagents.inspect.registered`:
docs/how-to/inspect.md.
"""
