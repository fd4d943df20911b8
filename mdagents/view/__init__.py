"""Serves runs to a browser: the run writes its files, this reads them, neither waits."""
