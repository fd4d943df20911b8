"""A team of mdagents-bench as a harness."""

import json
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from pydantic import Field
from verifiers.v1.dialects.chat import message_to_wire

PROGRAM = (Path(__file__).parent / "program.py").read_bytes()
_SECONDS = 86_400  # effectively no limit: the rollout has one
_MOST_SEEDS = 2**31


class MdagentsTeamHarnessConfig(vf.HarnessConfig):
    """Which team answers, and where its program is."""

    command: str = "mdagents"
    """Program of mdagents-bench in the runtime, such as `/path/of/the/clone/.venv/bin/mdagents`."""
    team: str = "adaptive"
    """Team or method, such as `basic`, `advanced` or `majority_vote`."""
    flags: dict[str, str] = Field(default_factory=dict)
    """Further flags of `mdagents serve` without the hyphens -> value, such as `rpm` -> `60`."""


class MdagentsTeamHarness(vf.Harness[MdagentsTeamHarnessConfig]):
    """Runs a team; each of its calls goes through the rollout's endpoint.

    The reply of the rollout is the answer of the team, in the form for which the prompt asks. It is
    empty where the team came to no answer. `trace.info["mdagents"]` holds votes, confidence and
    tokens.
    """

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Have the team answer the prompt, and keep its answer as the reply of the rollout.

        Raises:
            ValueError: The configuration disables tools, or the task has no prompt.
            HarnessError: The program printed no answer.
        """
        if self.config.disabled_tools:
            raise ValueError("a team of mdagents-bench has no tools that could be disabled")
        trace.root_reply = ""  # where the rollout is stopped, the last expert's reply is no answer
        folder = f".mdagents-{trace.id}"
        command = [
            self.config.command, "serve", "--port", "0", "--team", self.config.team,
            "--model", ctx.model, "--model-base-url", endpoint,
            # Rollouts of one question are independent: none may replay the replies of another.
            "--cache", "off", "--sample-time-limit", str(_SECONDS),
            "--output-dir", f"{folder}/output", *self._flags(),
        ]  # fmt: skip
        request = {
            "model": "mdagents",
            "messages": self._messages(data),
            "seed": int(trace.id, 16) % _MOST_SEEDS,
        }
        job = json.dumps({"command": command, "request": request}).encode()
        await runtime.write(f"{folder}/program.py", PROGRAM)
        await runtime.write(f"{folder}/job.json", job)
        result = await runtime.run_program(
            ["python3", f"{folder}/program.py", f"{folder}/job.json"],
            {**self.config.resolved_env, "OPENAI_API_KEY": secret},
        )
        if result.exit_code == 0:
            self._keep(trace, result.stdout)
        return result

    def _flags(self) -> list[str]:
        given = {name.replace("_", "-"): value for name, value in self.config.flags.items()}
        return [word for name, value in given.items() for word in (f"--{name}", value)]

    def _messages(self, data: vf.TaskData) -> list[dict[str, Any]]:
        system, prompt = self.resolve_prompt(data)
        if prompt is None:
            raise ValueError("a team answers the prompt of a task, and this task has none")
        asked = [vf.UserMessage(content=prompt)] if isinstance(prompt, str) else prompt
        before = [vf.SystemMessage(content=system)] if system else []
        return [message_to_wire(message) for message in (*before, *asked)]

    def _keep(self, trace: vf.Trace, printed: str) -> None:
        try:
            answer = json.loads(printed.strip().splitlines()[-1])
            trace.root_reply = str(answer["reply"])
            trace.info["mdagents"] = dict(answer["mdagents"])
        except (ValueError, IndexError, KeyError, TypeError) as error:
            raise vf.HarnessError(
                f"the team's program printed no answer: {printed[-200:]!r}"
            ) from error
