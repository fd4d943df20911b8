"""Words for danger, denial and disagreement, in one folder per language."""
