"""Medagen: triage of complaints in Vietnamese and English. Not a medical device."""
