"""The workflow as a graph of LangGraph."""
