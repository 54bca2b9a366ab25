"""Whether a provider keeps the rules: for those who write one, to run in their own tests.

What `Session` does itself (overlays, message shapes, ranges of compactions) is not asked of a
provider. Optional methods are checked where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workspace_session.errors import RuleBroken
from workspace_session.session.calling import AwaitableProvider, call
from workspace_session.session.change_rules import CHANGE_RULES
from workspace_session.session.message_rules import MESSAGE_RULES
from workspace_session.session.protocols import missing_methods
from workspace_session.session.trial import Differs, Rule, Trial


async def check_provider(make_provider: Callable[[], Any]) -> None:
    """See that a kind of provider is fit to be given to `Session`.

    `make_provider()` gives a provider of a session without messages, a new one each time. What
    sessions do is played on them; `RuleBroken` names the first rule that is not kept.
    """
    lacks = missing_methods(await call(make_provider))
    if lacks:
        raise RuleBroken("a provider has all required methods", f"it lacks {', '.join(lacks)}")
    for rule in (*MESSAGE_RULES, *CHANGE_RULES):
        provider = await call(make_provider)
        if rule.needs is None or callable(getattr(provider, rule.needs, None)):
            await _check(rule, AwaitableProvider(provider))


async def _check(rule: Rule, provider: AwaitableProvider) -> None:
    try:
        await rule.play(Trial(provider))
    except Differs as difference:
        raise RuleBroken(rule.sentence, str(difference)) from None
    except Exception as error:
        raise RuleBroken(rule.sentence, f"{type(error).__name__}: {error}") from error
