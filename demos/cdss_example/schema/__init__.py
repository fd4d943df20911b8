"""What a clinical case is."""
