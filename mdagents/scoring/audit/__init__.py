"""The audit of a collaboration: what changed between first opinions and decision, and why."""
