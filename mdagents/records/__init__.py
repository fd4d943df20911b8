"""The files of a run on disk: their schemas, writers and readers."""
