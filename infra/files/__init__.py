"""What is read from and written to files and streams, whatever it is about."""
