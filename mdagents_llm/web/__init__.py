"""A web server for browsers: its address, access control, and lifetime."""
