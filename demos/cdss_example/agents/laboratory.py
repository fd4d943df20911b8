"""The laboratory physician: values, their units, and what is missing."""

from demos.cdss_example.agents.specialist import Specialist


class LaboratoryAgent(Specialist):
    """Reads laboratory values and vital signs."""

    name = "laboratory"
