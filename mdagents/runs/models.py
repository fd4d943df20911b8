"""The models of a run: the model of each role, and checks of their availability."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from exaid_core.config import JUDGED
from exaid_core.policy import TriggerPolicy
from mdagents.agents.case import sees_pictures
from mdagents.runs.config import RunConfig
from mdagents.runs.flags.picture_flags import Images
from mdagents.runs.solver import roles_at_work
from mdagents.runs.spans import wants_text
from mdagents.settings import EXAID_ROLES, TeamRole, expert_number
from mdagents.teams.train_split import Embedding
from mdagents_llm.chat import ChatModel
from mdagents_llm.clock import Clock
from mdagents_llm.config import Environment, LLMRole
from mdagents_llm.endpoints import CONNECTIONS, ModelSpec, Runtime, check_reachable
from mdagents_llm.errors import ConfigError
from mdagents_llm.files.open_files import most_open_files
from mdagents_llm.layers.cache import CacheMode, Replies
from mdagents_llm.layers.reply_store import ReplyStore
from mdagents_llm.layers.retry import OnWait
from mdagents_llm.ledger import Ledger, Logged
from mdagents_llm.llm_registry import AUTO, ModelChooser, ModelRegistry
from mdagents_llm.model_configs import ModelConfigs, load_model_configs

if TYPE_CHECKING:
    from mdagents_llm.layers.batch import Batching


def choose_models(config: RunConfig, environment: Environment) -> dict[str, ModelSpec]:
    """Return role -> model, by the order of precedence in docs/how-to/models.md.

    Raises:
        ConfigError: A model is unknown, or takes no batches although the run uses them; or the
            method needs experts with models of their own, and they are missing or all equal.
    """
    seats, seated = config.declared.seats, config.own_experts
    if len(seated) < seats:
        examples = " ".join(f"--model-role expert-{n}=MODEL" for n in range(1, seats + 1))
        raise ConfigError(
            f"--method {config.method_name} is a round table of different models; name them: "
            f"{examples}"
        )
    configs = load_model_configs()
    team = ModelChooser(environment, configs, config.model_base_url).parse(config.model)
    specs = {role.value: team for role in TeamRole}
    for role, model in config.model_role.items():
        # A role's model names its own provider; only a name without one is on the team's server.
        has_provider = configs.provider(model.partition("/")[0]) or configs.provider_of(model)
        url = "" if has_provider else config.model_base_url
        specs[role] = ModelChooser(environment, configs, url).parse(model)
    for role in exaid_roles(config.exaid_policy):
        if role.value not in specs:
            chooser = ModelChooser(environment, configs, config.model_base_url)
            specs[role.value] = chooser.for_role(role, team, chosen=config.model != AUTO)
    for role in config.roles_apart - specs.keys():
        if expert_number(role) is not None:
            specs[role] = specs[TeamRole.EXPERT.value]
    specs = {
        role: replace(spec, thinking=config.thinking(role), api=_api(config, role, spec, configs))
        for role, spec in specs.items()
    }
    for spec in specs.values() if config.batch else ():
        provider = configs.provider(spec.provider)
        if provider is None or provider.batch_price is None:
            raise ConfigError(f"{spec.provider} takes no batches; leave --batch out")
    if seats and len({f"{specs[role]} {specs[role].base_url}" for role in seated}) < 2:
        raise ConfigError(
            f"--method {config.method_name} is a round table of different models, and all of its "
            f"experts are {specs[seated[0]]}; give them others by --model-role expert-N"
        )
    return specs


def check_sight(config: RunConfig, specs: Mapping[str, ModelSpec], pictured: int) -> None:
    """Check that all agents that are to see pictures have models that take them.

    Args:
        config: Configuration of the run.
        specs: Role -> model.
        pictured: Number of selected questions with pictures.

    Raises:
        ConfigError: A model is known to take no pictures, or no agent would see any.
    """
    if not pictured or config.images is Images.DROP:
        return
    ways = "choose another model, ask with --images drop, or leave them out with --skip-pictures"
    at_work = set(roles_at_work(config))
    if config.declared.seats:
        at_work.discard(TeamRole.EXPERT)  # each seat has a model of its own
    seeing = sorted(role for role in at_work if sees_pictures(role, config.image_agents))
    if seeing in ([], [TeamRole.ROUTER]):
        raise ConfigError(
            f"--image-agents {config.image_agents} shows pictures only to the router and experts, "
            f"and --method {config.method_name} has no experts; leave --image-agents out"
        )
    configs = load_model_configs()
    infos = {role: configs.info(specs[role].provider, specs[role].name) for role in seeing}
    blind = [role for role in seeing if infos[role].takes_images is False]
    if blind:
        others = {str(specs[role]) for role in seeing} - {str(specs[role]) for role in blind}
        beside = f" beside {', '.join(sorted(others))}, which may see them," if others else ""
        raise ConfigError(
            f"{pictured} of the questions have pictures, and {specs[blind[0]]} "
            f"({', '.join(blind)}){beside} takes none; {ways}"
        )


_OF_BOTH_APIS = ("openai", "azure")
"""Wires that offer both chat completions and Responses."""


def _api(
    config: RunConfig, role: str, spec: ModelSpec, configs: ModelConfigs
) -> Literal["", "chat", "responses"]:
    """Return the API for the model of a role; empty for the model's usual one.

    Raises:
        ConfigError: The user chose an API for a model that has no choice.
    """
    asked = config.api_of(role)
    if not asked:
        return ""
    provider = configs.provider(spec.provider)
    if provider is None or provider.wire not in _OF_BOTH_APIS:
        # A choice for all roles excludes EXAID's models, which may be from another provider.
        if role in EXAID_ROLES and role not in config.roles_apart:
            return ""
        raise ConfigError(
            f"--api is '{asked}' for {role}, but {spec} has only one API; leave it out, or give "
            "it by role: --api expert=responses"
        )
    usual = configs.info(spec.provider, spec.name).api
    return "" if asked == usual else "chat" if asked == "chat" else "responses"


def models_of_teams(
    registry: ModelRegistry, specs: Mapping[str, ModelSpec]
) -> dict[str, ChatModel]:
    """Return role -> model for all roles except EXAID's."""
    return {role: registry.model(s) for role, s in specs.items() if role not in EXAID_ROLES}


def exaid_roles(policy: TriggerPolicy | None) -> tuple[LLMRole, ...]:
    """Return the roles for which a trigger policy of EXAID needs a model."""
    if policy is None:
        return ()
    if policy in JUDGED:
        return LLMRole.SUMMARIZER, LLMRole.BUFFER_AGENT
    return (LLMRole.SUMMARIZER,)


def check_models(
    config: RunConfig, environment: Environment, specs: Mapping[str, ModelSpec]
) -> None:
    """Check that all models can be reached and that their price is known if the cost is limited.

    Raises:
        ConfigError: A model cannot be reached, the cost is limited and its price unknown, or the
            processes of this machine would each load the same local model.
    """
    configs = load_model_configs()
    for spec in specs.values():
        if spec.is_local and config.is_distributed and not config.ray_address:
            raise ConfigError(
                f"--processes is for endpoints; {spec} uses all cores of this machine from one "
                "process; leave --processes out"
            )
        if config.cache is not CacheMode.ONLY:
            check_reachable(spec, environment, configs)
        if config.limits.run_cost is not None and configs.price(spec.provider, spec.name) is None:
            raise ConfigError(
                f"--cost-limit needs the price of {spec}, which is not known; use --token-limit"
            )
    if config.cache is not CacheMode.ONLY and not config.ray_address:
        _check_open_files(config, specs)


_OTHER_FILES = 64
"""Files and connections of a run besides its calls: records, traces, cache, live view."""


def _check_open_files(config: RunConfig, specs: Mapping[str, ModelSpec]) -> None:
    """Check that this process may open as many connections as the run needs.

    Raises:
        ConfigError: The limit of open files is too low and cannot be raised.
    """
    endpoints = len({(spec.provider, spec.base_url) for spec in specs.values()})
    attempts = 1 if config.hedge_after is None else 2  # concurrent attempts of a call
    each = config.max_connections or CONNECTIONS
    needed = each * endpoints * attempts + _OTHER_FILES
    most = most_open_files(needed)
    if most < needed:
        fitting = (most - _OTHER_FILES) // (endpoints * attempts)
        advice = f"give --max-connections {fitting} or fewer, or " if fitting > 0 else ""
        raise ConfigError(
            f"--max-connections is {each}, which takes {needed} open files, and this process may "
            f"have {most}; {advice}raise the limit with ulimit -n"
        )


def local_embedding(environment: Environment) -> Embedding:
    """Return the embedding with which this machine finds similar questions."""
    from mdagents_llm.embeddings import local_embedder  # loads numpy, which few methods need

    return Embedding(local_embedder(), environment.caches)


def make_runtime(
    config: RunConfig,
    environment: Environment,
    ledger: Ledger,
    clock: Clock,
    *,
    replies: Replies | None = None,
    replay: ReplyStore | None = None,
    on_wait: OnWait | None = None,
    may_send: Callable[[], None] | None = None,
    batching: Batching | None = None,
) -> Runtime:
    """Return the resources that the models of a run share.

    Args:
        config: Configuration of the run.
        environment: API keys and endpoints.
        ledger: Ledger in which calls are recorded.
        clock: Clock for all times.
        replies: Reply cache; None: no cache.
        replay: Store of cached replies that are the only source of replies; None: no replay.
        on_wait: Called at each pause before a call is retried.
        may_send: Raises LimitExceeded when a limit of the run is reached; None: no limit.
        batching: Settings for requests in batches; None: each request is sent at once.
    """
    return Runtime(
        environment=environment,
        ledger=ledger,
        clock=clock,
        retry=config.retry,
        attempt_timeout=config.attempt_timeout,
        hedge_after=config.hedge_after,
        max_connections=config.max_connections,
        requests_per_minute=config.rpm,
        tokens_per_minute=config.tpm,
        replies=replies,
        replay=replay,
        logged=Logged(
            prompts=config.log_prompts or wants_text(config, environment.variables),
            reasoning=config.keep_reasoning,
        ),
        on_wait=on_wait,
        may_send=may_send,
        batching=batching,
    )
