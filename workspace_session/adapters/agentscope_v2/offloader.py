"""Where an agent puts what its context has no more room for.

Messages go to the transcript of their session, everything else to files that are named after what they
hold. Paths are below the root of the workspace, with `/`.
"""

from __future__ import annotations

import base64
import mimetypes
import os
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from agentscope.message import URLSource

from workspace_session import MemoryFlushManager, RuntimeContext, Workspace
from workspace_session.adapters.agentscope_v2.conversation import Message, dumped, whole
from workspace_session.bridge import in_thread


class WorkspaceOffloader:
    """What AgentScope calls an offloader, for one agent of a workspace."""

    def __init__(
        self,
        workspace: Workspace | str | os.PathLike[str],
        agent_id: str,
        user_id: str | None = None,
    ) -> None:
        self._manager = MemoryFlushManager(workspace)
        self._ctx = RuntimeContext(user_id=user_id)
        self.agent = self._manager.manager.agent(agent_id, self._ctx)

    async def offload_context(self, session_id: str, msgs: Iterable[Any]) -> str:
        """Store messages in the transcript of a session; the path of its log."""
        return await in_thread(self._offload, session_id, [dumped(message) for message in msgs])

    def _offload(self, session_id: str, messages: list[Message]) -> str:
        messages = whole(self.agent.tree(session_id), messages)
        self._manager.offload_messages(self.agent.id, session_id, messages, ctx=self._ctx)
        return self.agent.place.layout.shown(self.agent.place.log(session_id))

    async def offload_tool_result(self, session_id: str, tool_result: Any) -> str:  # noqa: ARG002
        """Store what a tool gave back as text; the path. Data in it is stored beside it."""
        output = tool_result.output
        blocks = [] if isinstance(output, str) else [*output]
        texts = (
            [output] if isinstance(output, str) else [await self._text_of(one) for one in blocks]
        )
        return await in_thread(self.agent.keep_file, "\n".join(texts).encode(), ".txt")

    async def _text_of(self, block: Any) -> str:
        if block.type == "text":
            return str(block.text)
        source = (await self.offload_data_block(block)).source
        return f"[{source.media_type}: {source.url}]"

    async def offload_data_block(self, block: Any) -> Any:
        """A copy of a block whose data is a file; one that has a URL comes back as it is."""
        if block.source.type != "base64":
            return block
        data = base64.b64decode(block.source.data)
        extension = mimetypes.guess_extension(block.source.media_type) or ".bin"
        path = await in_thread(self.agent.keep_file, data, extension)
        # An id may have become a name with `%` in it, which a URL would take for an escape.
        url = f"workspace:///{quote(path)}"
        source = URLSource(url=url, media_type=block.source.media_type)
        return block.model_copy(update={"source": source})
