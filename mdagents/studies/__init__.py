"""Studies: many runs that answer one research question."""
