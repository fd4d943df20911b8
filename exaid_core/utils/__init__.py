"""Alternative import paths for parts of EXAID."""
