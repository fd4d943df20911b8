"""Clinical decision support: specialists in a LangGraph workflow, with live summaries by EXAID."""
