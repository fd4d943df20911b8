"""Fetches, converts, checks and divides data sets."""
