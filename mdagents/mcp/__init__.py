"""A server of the Model Context Protocol: teams, comparisons and scores as tools."""
