"""The tools of a session: models write, load, unload and search context blocks with them.

Names, schemas and answers are fixed: stored conversations are read by them later. Labels stand in
the schema as they are when the tools are made, and are checked again when a tool runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from workspace_session.session.context import ContextBlocks
from workspace_session.session.history_tool import history_search_tool
from workspace_session.session.prompt import usage_percent
from workspace_session.session.skills import LOAD, UNLOAD, LoadedSkills, not_found, unload_done
from workspace_session.session.tool import Tool, schema, text_input
from workspace_session.session.values import ContextBlock

__all__ = ["Tool", "history_search_tool", "session_tools"]

Unload = Callable[[str, str], Awaitable[bool]]


async def session_tools(
    blocks: ContextBlocks, skills: LoadedSkills, unload: Unload
) -> dict[str, Tool]:
    """The tools that apply to the blocks there are now, by name."""
    writable = [block for block in await blocks.blocks() if block.writable]
    tools: list[Tool] = []
    if writable:
        tools.append(_set_context(blocks, writable))
    if blocks.skill_labels():
        tools.append(_load_context(blocks, skills))
        tools.append(_unload_context(blocks, skills, unload))
    if blocks.search_labels():
        tools.append(_search_context(blocks))
    return {tool.name: tool for tool in tools}


# -- writing ---------------------------------------------------------------------------------------


def _set_context(blocks: ContextBlocks, writable: Sequence[ContextBlock]) -> Tool:
    properties = {
        "label": text_input("The block to write to.", [block.label for block in writable]),
        "content": text_input("The text to write."),
        "action": text_input(
            "Whether to replace the block, which is the default, or to append to it.",
            ["replace", "append"],
        ),
    }
    if any(map(_is_keyed, writable)):
        properties["metadata"] = _METADATA

    async def run(label: str, content: str, action: Any = None, metadata: Any = None) -> str:
        if not blocks.is_registered(label):
            return f'Error: block "{label}" not found'
        if label in blocks.skill_labels() + blocks.search_labels():
            title, description = _named(metadata)
            key = await blocks.write_entry(label, content, title=title, description=description)
            return f'Indexed "{key}" in {label}.'
        write = blocks.append if action == "append" else blocks.replace
        return f"Written to {label}. Usage: {_usage(await write(label, content))}"

    described = _describe_writing(writable)
    return Tool("set_context", described, schema(properties, "label", "content"), run)


_METADATA = {
    **schema(
        {
            "title": text_input("A short name; the same title updates the same entry."),
            "description": text_input("One line that says when the entry is of use."),
        }
    ),
    "description": "Names an entry of a keyed block.",
}


def _describe_writing(writable: Sequence[ContextBlock]) -> str:
    lines = ["Write to a context block. Writes are durable: they outlast this conversation."]
    if any(map(_is_keyed, writable)):
        lines.append(
            "In blocks with keyed entries every write is an entry of its own; name it with "
            "metadata: { title, description }."
        )
    lines.append("Blocks:")
    lines += [
        f'- "{block.label}" ({_kind(block)}): {block.description or "no description"}'
        for block in writable
    ]
    return "\n".join(lines)


def _kind(block: ContextBlock) -> str:
    if block.is_skill:
        return "skill collection, keyed entries"
    return "searchable, keyed entries" if block.is_searchable else "writable"


def _is_keyed(block: ContextBlock) -> bool:
    return block.is_skill or block.is_searchable


def _named(metadata: object) -> tuple[str | None, str | None]:
    if metadata is None:
        return None, None
    if not isinstance(metadata, Mapping):
        raise TypeError('argument "metadata" must be an object')
    title, description = metadata.get("title"), metadata.get("description")
    for name, value in (("title", title), ("description", description)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f'argument "metadata.{name}" must be a string')
    return title, description


def _usage(block: ContextBlock) -> str:
    if block.max_tokens is None or block.max_tokens <= 0:
        return f"{block.tokens} tokens"
    percent = usage_percent(block.tokens, block.max_tokens)
    return f"{percent}% ({block.tokens}/{block.max_tokens} tokens)"


# -- skills ----------------------------------------------------------------------------------------


def _load_context(blocks: ContextBlocks, skills: LoadedSkills) -> Tool:
    async def run(label: str, key: str) -> str:
        if label not in blocks.skill_labels():
            return _not_a_skill(blocks, label)
        document = await blocks.load_entry(label, key)
        if document is None:
            return not_found(key)
        skills.mark(label, key)
        return document

    described = (
        "Load a document of a skill block into the conversation. "
        "The keys of a block are listed in its part of the system prompt."
    )
    properties = {
        "label": text_input("The skill block.", blocks.skill_labels()),
        "key": text_input("The key of the document."),
    }
    return Tool(LOAD, described, schema(properties, "label", "key"), run)


def _unload_context(blocks: ContextBlocks, skills: LoadedSkills, unload: Unload) -> Tool:
    async def run(label: str, key: str) -> str:
        if label not in blocks.skill_labels():
            return _not_a_skill(blocks, label)
        if await unload(label, key):
            return unload_done(label, key)
        return f'Skill "{key}" is not currently loaded in "{label}".'

    described = (
        "Take the text of a loaded document out of the conversation when it is no longer needed. "
        f"It can be loaded again. Loaded now: {', '.join(sorted(skills.keys)) or 'none'}"
    )
    properties = {
        "label": text_input("The skill block.", blocks.skill_labels()),
        "key": text_input("The key of the loaded document."),
    }
    return Tool(UNLOAD, described, schema(properties, "label", "key"), run)


def _not_a_skill(blocks: ContextBlocks, label: str) -> str:
    named = ", ".join(blocks.skill_labels())
    return f'Error: "{label}" is not a skill block. Skill blocks: {named}'


# -- search ----------------------------------------------------------------------------------------


def _search_context(blocks: ContextBlocks) -> Tool:
    async def run(label: str, query: str) -> str:
        if label not in blocks.search_labels():
            named = ", ".join(blocks.search_labels())
            return f'Error: "{label}" is not searchable. Searchable blocks: {named}'
        return await blocks.search(label, query) or "No results found."

    described = (
        "Search the entries of a searchable context block. "
        "Only the labels listed for this tool are searchable."
    )
    properties = {
        "label": text_input("The block to search.", blocks.search_labels()),
        "query": text_input("Words to look for."),
    }
    return Tool("search_context", described, schema(properties, "label", "query"), run)
