"""How many tokens a session would cost a model now."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from workspace_session.model.tokens import estimate_message_tokens, estimate_tokens
from workspace_session.session.calling import call
from workspace_session.session.context import ContextBlocks
from workspace_session.session.prompt import SystemPrompt
from workspace_session.session.values import SessionMessage, TokenCountInput

TokenCounter = Callable[[TokenCountInput], Any]


async def session_tokens(
    context_tokens: Callable[[], Any] | None,
    history: Callable[[], Any],
    prompt: SystemPrompt,
    blocks: ContextBlocks,
    counter: TokenCounter | None,
) -> int:
    """The estimate of the active history and the prompt; nothing is frozen or written by it.

    `context_tokens` gives that of the history without reading it, where the storage can tell.
    """
    text = await prompt.current()
    if counter is not None:
        loaded = await blocks.blocks()
        return await counted(counter, await history(), text, loaded)
    if context_tokens is not None:
        return int(await context_tokens()) + estimate_tokens(text)
    return estimate_message_tokens(await history()) + estimate_tokens(text)


async def counted(
    counter: TokenCounter,
    messages: Sequence[SessionMessage],
    prompt: str = "",
    blocks: Sequence[Any] = (),
) -> int:
    """What a counter says, as a whole number; what is no number of tokens counts as none."""
    tokens: float = await call(counter, TokenCountInput(messages, prompt, tuple(blocks)))
    if math.isnan(tokens) or math.isinf(tokens) or tokens < 0:
        return 0
    return math.ceil(tokens)
