"""Where the questions of a run are answered: in this process, or on a Ray cluster.

An engine answers; what comes of it goes to the `Desk` of the run, which alone writes to its folder.
So a run is on disk the same, whichever engine made it, and can be continued with another.
"""
