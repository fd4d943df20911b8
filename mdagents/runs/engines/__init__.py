"""Engines that answer the questions of a run: in this process, or in workers.

An engine passes its results to the run's `Recorder`, which alone writes to the run folder. A run
has the same files on disk whichever engine made it, and another engine can resume it.
"""
