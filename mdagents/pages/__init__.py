"""The pages: of a run while it works, and its report as one file that needs nothing else."""
