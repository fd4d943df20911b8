"""Strict parsing of external YAML, with one-line errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mdagents_llm.errors import ConfigError


def read_yaml(path: Path, name: str = "") -> Any:
    """Parse a YAML file in which every scalar is text, such as `off` or the ID `0010`.

    Args:
        path: Path of the file.
        name: Name of the file in errors; empty for its path.

    Raises:
        ConfigError: The file cannot be read, is not YAML, or has a duplicate key in a mapping.
    """
    import yaml  # slow to import, and rarely needed

    name = name or str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        tree = yaml.compose(text, Loader=yaml.BaseLoader)
        _refuse_doubles(tree, name)
        return yaml.load(text, Loader=yaml.BaseLoader)
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{name} is not UTF-8 text; save it as UTF-8") from None
    except ValueError as error:  # a NUL in the path
        raise ConfigError(f"{name!r} names no file: {error}") from None
    except RecursionError:
        raise ConfigError(f"{name} is nested too deeply") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ConfigError(f"{name}{where} is not YAML: {what}") from None


def _refuse_doubles(tree: Any, name: str) -> None:
    """Refuse a mapping with a duplicate key, for which YAML would silently keep the last value."""
    import yaml

    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            seen = set[str]()
            for key, value in node.value:
                waiting.append(value)
                if isinstance(key, yaml.ScalarNode):
                    if key.value in seen:
                        raise ConfigError(
                            f"{name} line {key.start_mark.line + 1} has '{key.value}' a second "
                            "time; leave one of them out"
                        )
                    seen.add(key.value)
