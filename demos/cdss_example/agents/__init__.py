"""The four agents of the decision support system."""

from demos.cdss_example.agents.cardiology import CardiologyAgent
from demos.cdss_example.agents.laboratory import LaboratoryAgent
from demos.cdss_example.agents.orchestrator import OrchestratorAgent
from demos.cdss_example.agents.synthesis import SynthesisAgent

__all__ = ["CardiologyAgent", "LaboratoryAgent", "OrchestratorAgent", "SynthesisAgent"]
