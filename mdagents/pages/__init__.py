"""HTML pages: the live view of a run, and its report as one self-contained file."""
