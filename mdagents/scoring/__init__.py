"""Scoring of runs from their files alone, without network access or an API key."""
