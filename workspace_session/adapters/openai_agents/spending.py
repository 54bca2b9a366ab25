"""What runs have used: tokens and money, as facts of the session."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from workspace_session.adapters.openai_agents.handle import Handle


class Spending(Handle):
    """A session that counts. Recording a run twice adds only what it has used in between."""

    _run: Any = None  # the `Usage` of the run that used this session last

    @cached_property
    def _recorded(self) -> dict[int, tuple[Any, int, int]]:
        """Each `Usage` that was recorded, and how much of it is counted, by its identity."""
        return {}

    async def usage(self) -> Any:
        """What was recorded, summed: `input_tokens`, `output_tokens`, `cost`."""
        return await self._tree_calls.read(self.tree.usage)

    async def record_usage(self, result: Any = None, *, cost: float = 0.0) -> None:
        """Add what a run has used: of its result, or of the last run on this session.

        Tokens are counted once, however often a run is recorded; a cost is added each time. A run that
        is resumed in another process goes on counting: record its last result only.
        """
        found = getattr(result, "context_wrapper", result)
        used = self._run if found is None else getattr(found, "usage", found)
        tree = self.tree
        if used is None:
            raise ValueError(f"no run has used session {tree.id!r} yet")
        if not hasattr(used, "input_tokens"):
            raise TypeError(f"usage is that of a run's result, not of {used!r}")
        _, *before = known = self._recorded.get(id(used), (used, 0, 0))
        now = (used.input_tokens, used.output_tokens)
        spent = [max(count - old, 0) for count, old in zip(now, before, strict=True)]
        if not any(spent) and not cost:
            return
        self._recorded[id(used)] = (used, *now)  # before it is: somebody else may record it too
        try:
            await self._tree_calls.write(
                tree.add_usage, input_tokens=spent[0], output_tokens=spent[1], cost=cost
            )
        except Exception:  # who is cancelled has written
            self._recorded[id(used)] = known
            raise

    def _note(self, wrapper: Any) -> None:
        """Remember whose run it is, from the context that the SDK hands to every call."""
        if wrapper is not None:
            self._run = wrapper.usage
