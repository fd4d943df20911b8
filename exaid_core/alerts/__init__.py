"""Rule-based detection of dangers to life that agents report."""
