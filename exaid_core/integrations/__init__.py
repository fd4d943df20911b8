"""EXAID in programs of other frameworks; only the module of a package needs that package.

| module | gives | extra |
|---|---|---|
| `langchain` | `ExaidCallback`, for LangChain and LangGraph | `langchain` |
| `openai_agents` | `ExaidHooks`, for the OpenAI Agents SDK | `agents` |
| `autogen` | `overheard`, for teams of AutoGen's agentchat | |
| `opentelemetry` | `ExaidSpans`, what EXAID does as spans | `opentelemetry` |
"""
