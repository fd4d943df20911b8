"""The teams and methods: each file is one protocol, read from top to bottom."""
