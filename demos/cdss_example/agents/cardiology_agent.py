"""The cardiology specialist: heart and circulation."""

from demos.cdss_example.agents.specialist import Specialist


class CardiologyAgent(Specialist):
    """Specialist that judges which findings are dangerous, how likely, and decisive."""

    name = "cardiology"
