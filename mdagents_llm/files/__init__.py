"""Reading and writing files and streams, whatever their content."""
