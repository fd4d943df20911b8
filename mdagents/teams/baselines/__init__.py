"""Methods without a team of roles, to which teams are compared: one file each."""
