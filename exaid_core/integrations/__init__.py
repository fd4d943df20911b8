"""EXAID in programs of other frameworks; each module needs only its own framework.

| module | provides | extra |
|---|---|---|
| `langchain` | `ExaidCallback`, for LangChain and LangGraph | `langchain` |
| `openai_agents` | `ExaidHooks`, for the OpenAI Agents SDK | `agents` |
| `autogen` | `overheard`, for teams of AutoGen's agentchat | |
| `opentelemetry` | `ExaidSpans`, spans of the work of EXAID | `opentelemetry` |
"""
