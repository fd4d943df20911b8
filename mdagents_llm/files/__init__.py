"""Generic helpers to read and write files and streams."""
