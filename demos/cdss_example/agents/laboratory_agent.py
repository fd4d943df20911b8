"""The laboratory specialist: values, their units, and missing tests."""

from demos.cdss_example.agents.specialist import Specialist


class LaboratoryAgent(Specialist):
    """Specialist that reads laboratory values and vital signs."""

    name = "laboratory"
