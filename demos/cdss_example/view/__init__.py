"""The page that shows a case while it is worked on."""
