"""The report of a run, or of a comparison, as one HTML file that needs nothing else."""
