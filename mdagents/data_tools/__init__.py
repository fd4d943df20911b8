"""Tools that download, convert, check and split data sets."""
