"""Serves runs to browsers by reading the files that the runs write; neither waits."""
