"""Shared parts of the companion systems: sessions, retrieval, guards."""
