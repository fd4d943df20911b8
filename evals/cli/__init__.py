"""Command-line programs of evals: `python -m evals.cli.NAME`."""
