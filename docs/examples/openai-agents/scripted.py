"""A model that says what it is told to, so that the examples run offline; yours is a provider's."""

from __future__ import annotations

import sys
from typing import Any

import agents
from agents import Agent
from agents.testing import ScriptedModel, assistant_message, function_call

agents.set_tracing_disabled(True)

says, calls = assistant_message, function_call


def scripted(name: str, *steps: Any, **more: Any) -> Agent:
    """An agent whose model gives these answers, one after the other."""
    answers = [[step] if not isinstance(step, list) else step for step in steps]
    return Agent(name=name, model=ScriptedModel(answers), **more)


def directory() -> str:
    """The directory of the workspace, as it was given on the command line."""
    if len(sys.argv) < 2:
        sys.exit(f"usage: python {sys.argv[0]} WORKSPACE")
    return sys.argv[1]


def line(item: dict[str, Any]) -> str:
    """An item on one line."""
    if item.get("type") == "function_call":
        return f"{'(call)':>10}  {item['name']}({item['arguments']})"
    if item.get("type") == "function_call_output":
        return f"{'(output)':>10}  {item['output']}"
    content = item["content"]
    return f"{item['role']:>10}  {content if isinstance(content, str) else content[0]['text']}"
