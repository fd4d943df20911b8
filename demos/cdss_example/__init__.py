"""Clinical decision support: specialists in a LangGraph workflow, with live EXAID summaries."""
