"""Result formats of other programs, one module per program."""
