"""The terminal: printed lines, command-line parsing, and suggestions for typing errors."""
