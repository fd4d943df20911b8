"""Further import paths of parts of EXAID."""
