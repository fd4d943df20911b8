"""Baselines to which the teams are compared: methods without a team of roles, one per file."""
