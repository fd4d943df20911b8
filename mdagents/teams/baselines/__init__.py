"""Methods to which the teams are compared: each module is one, and `--method` takes its name."""
