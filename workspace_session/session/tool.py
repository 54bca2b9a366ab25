"""A tool for a model: a name, a description, a schema, and an executor that never raises.

Whatever goes wrong becomes the text `Error: …`, which the model can read and act upon. Only a
cancellation passes through.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

Executor = Callable[..., Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Tool:
    """What a model may call; `openai()` and `anthropic()` describe it the way those APIs want."""

    name: str
    description: str
    input_schema: dict[str, Any]
    run: Executor = field(repr=False, compare=False)

    async def execute(self, /, **arguments: Any) -> str:
        """The answer for the model, an error included."""
        problem = _problem(self.input_schema, arguments)
        if problem is not None:
            return f"Error: {problem}"
        try:
            return await self.run(**arguments)
        except Exception as error:  # the model is the one to be told
            return f"Error: {str(error) or type(error).__name__}"

    def openai(self) -> dict[str, Any]:
        """The tool for OpenAI's chat completions and what is compatible with them."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": deepcopy(self.input_schema),
        }
        return {"type": "function", "function": function}

    def anthropic(self) -> dict[str, Any]:
        """The tool for Anthropic's messages."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": deepcopy(self.input_schema),
        }


def schema(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """The schema of an object with these members and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def text_input(description: str, values: list[str] | None = None) -> dict[str, Any]:
    """The schema of a text, or of one among some texts."""
    choice = {} if values is None else {"enum": values}
    return {"type": "string", **choice, "description": description}


def number_input(description: str) -> dict[str, Any]:
    """The schema of a whole number."""
    return {"type": "integer", "description": description}


def _problem(expected: Mapping[str, Any], arguments: Mapping[str, Any]) -> str | None:
    """What is wrong with the arguments; values are judged by the executor, which has better texts."""
    for name in expected["required"]:
        if name not in arguments:
            return f'argument "{name}" is missing'
        if not isinstance(arguments[name], str):
            return f'argument "{name}" must be a string'
    for name in arguments:
        if name not in expected["properties"]:
            return f'unknown argument "{name}"'
    return None
