"""The four agents of the decision support system."""

from demos.cdss_example.agents.cardiology_agent import CardiologyAgent
from demos.cdss_example.agents.laboratory_agent import LaboratoryAgent
from demos.cdss_example.agents.orchestrator_agent import OrchestratorAgent
from demos.cdss_example.agents.synthesis_agent import SynthesisAgent

__all__ = ["CardiologyAgent", "LaboratoryAgent", "OrchestratorAgent", "SynthesisAgent"]
