"""Answers questions about documents, summarizes them, and calculates with their numbers."""
