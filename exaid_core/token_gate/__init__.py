"""Gates that release streamed text in chunks."""
