"""The cases of the demonstration, made up by us: no patient's."""
