"""The demonstration cases, all fictional: none describes a real patient."""
