"""The four agents: who is asked what, and in which form."""

from demos.cdss_example.agents.cardiology import CardiologyAgent
from demos.cdss_example.agents.laboratory import LaboratoryAgent
from demos.cdss_example.agents.orchestrator import OrchestratorAgent
from demos.cdss_example.agents.synthesis import SynthesisAgent

__all__ = ["CardiologyAgent", "LaboratoryAgent", "OrchestratorAgent", "SynthesisAgent"]
