"""The web page that shows a case in progress."""
