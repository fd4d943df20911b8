"""The flags of a run: the one place that knows a flag's type, bounds, default and help text.

flag.py            what can be said about a flag
*_flags.py         the flags in the groups of `--help`, with their checks and derived values
bounds.py          bounds of numbers, and their wording in errors
lists.py           values with commas, and `name=value`
by_role.py         values that may differ by role, `expert=low`
word_limits.py     names and bounds of the word limits of `--words`
error_sentences.py the sentence about an invalid flag

`runs.config` puts the groups together and checks combinations. `runs.options` makes the command
line from them. A new flag is one new field; one that changes a result also goes into
`runs.identity`, except for counts and word limits of the team, which are in there already.
"""
