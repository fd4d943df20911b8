"""Words that mean danger, denial or disagreement, in the languages of the folders beside this."""
