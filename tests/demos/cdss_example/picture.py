"""Takes the picture of docs/how-to/cdss.md: the page amid a case, on a scripted model."""

from __future__ import annotations

import asyncio
from importlib.resources import files

from playwright.async_api import expect

from demos.cdss_example.cdss import CDSS
from demos.cdss_example.schema.clinical_case import case_of_json
from demos.cdss_example.view.page import PageServer
from mdagents_llm.config import Environment
from mdagents_llm.endpoints import ModelSpec, Runtime
from mdagents_llm.ledger import Ledger
from mdagents_llm.llm_registry import ModelRegistry
from mdagents_llm.web.address import listen
from tests.conftest import REPOSITORY
from tests.demos.cdss_example.team import COORDINATES, JUDGES_HEARTS, READS_VALUES, RECOMMENDS
from tests.fake_provider import FakeProvider, SeenRequest
from tests.support.browser import open_page

FILE = REPOSITORY / "docs" / "images" / "cdss_view.png"


def _decide(request: SeenRequest) -> dict[str, str]:
    if "laboratory: " not in request.text.partition("<opinions>")[2]:
        return {
            "running_summary": "58-year-old man, 6 h of pressing chest pain at rest, sweating, "
            "ST depression of 2 mm in V4–V6, troponin T rising from 86 to 142 ng/L.",
            "reason": "The values have to be read before the heart is judged.",
            "next_step": "laboratory",
            "question": "Is the rise of troponin acute, and may the kidneys explain it?",
        }
    return {
        "running_summary": "The rise of troponin T within an hour is acute myocardial injury.",
        "reason": "Risk and time of angiography are to be judged.",
        "next_step": "cardiology",
        "question": "How high is the risk, and what is to be done now?",
    }


def _summary(request: SeenRequest) -> dict[str, str]:
    if "status_action" not in str(request.schema):
        return {}
    return {
        "status_action": "Troponin T 86 to 142 ng/L within an hour: acute myocardial injury.",
        "key_findings": "ST depression of 2 mm in V4–V6, creatinine 1.3 mg/dL.",
        "differential_rationale": "NSTEMI; the kidneys do not explain a rise within an hour.",
        "uncertainty_confidence": "None reported.",
        "recommendation_next_step": "Cardiology judges risk and time of angiography.",
        "agent_contributions": "Laboratory read the values, the orchestrator asked cardiology.",
    }


def script(provider: FakeProvider) -> None:
    """Say what the picture shows."""
    provider.when(COORDINATES, _decide)
    provider.when(
        READS_VALUES,
        "Troponin T rose from 86 to 142 ng/L within an hour, ten times the limit of 14 ng/L: an "
        "acute injury. Creatinine 1.3 mg/dL is slightly raised and does not explain a rise within "
        "an hour. D-dimer 0.4 mg/L is normal. Potassium 4.6 mmol/L allows the usual treatment.",
    )
    provider.when(
        JUDGES_HEARTS,
        "NSTEMI of high risk: rest pain, dynamic troponin and ST depression of 2 mm in V4–V6, with "
        "crackles at both bases. Pulmonary embolism is unlikely, dissection has to be asked for.",
    )
    provider.when(RECOMMENDS, {"urgency": "emergency"})
    provider.when(lambda request: "status_action" in str(request.schema), _summary)


async def _take() -> None:
    raw = files("demos.cdss_example.cases").joinpath("chest-pain.json").read_bytes()
    place = listen("", 0)
    with FakeProvider() as provider, place.socket:
        script(provider)
        url = provider.openai_base_url
        spec = ModelSpec("openai", "gpt-4o-mini", url)
        registry = ModelRegistry(Runtime(Environment({"OPENAI_API_KEY": "k"}), Ledger()))
        async with PageServer(place, model="a scripted model") as server, open_page() as page:
            cdss = CDSS(registry.model(spec), on_event=server.log.add)
            await page.set_viewport_size({"width": 1280, "height": 640})
            await page.goto(place.url("/"))
            hold = provider.hold(RECOMMENDS)
            case = asyncio.create_task(cdss.process_case(case_of_json(raw, "chest-pain")))
            try:
                await expect(page.locator(".runs-now")).to_have_attribute("data-node", "synthesis")
                await expect(page.locator(".card").first).to_be_visible()
                await page.screenshot(path=FILE)
            finally:
                hold.release()
                await case
        await registry.aclose()


if __name__ == "__main__":
    asyncio.run(_take())
