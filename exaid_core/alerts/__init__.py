"""Dangers to life that an agent reports, found by rule."""
