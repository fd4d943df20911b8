"""Studies: many runs, one question answered."""
