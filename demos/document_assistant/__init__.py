"""Answers questions about documents, summarises them, and calculates with what they hold."""
