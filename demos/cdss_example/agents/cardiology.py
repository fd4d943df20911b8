"""The cardiologist: heart and circulation."""

from demos.cdss_example.agents.specialist import Specialist


class CardiologyAgent(Specialist):
    """Judges what is dangerous, how likely it is, and what decides."""

    name = "cardiology"
