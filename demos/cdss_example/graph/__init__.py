"""The workflow as a LangGraph graph."""
