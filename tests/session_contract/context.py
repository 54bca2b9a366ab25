"""The system prompt and loaded skills."""

from __future__ import annotations

import asyncio

import pytest

from session_contract.talk import (
    RULE,
    AsyncTests,
    Broken,
    Heard,
    fill,
    loads,
    says,
)
from workspace_session import (
    BlockError,
    Session,
    estimate_tokens,
)


class PromptContract(AsyncTests):
    async def test_the_prompt_shows_the_blocks(self, store):
        session = (
            Session.create(store)
            .for_session("s")
            .with_context("soul", description="Identity", provider={"get": lambda: "You help."})
            .with_context("memory", description="Learned facts", max_tokens=1100)
            .with_context("notes")
        )
        await session.replace_context_block(
            "memory", "User likes coffee.\nUser prefers dark roast."
        )

        tokens = estimate_tokens("User likes coffee.\nUser prefers dark roast.")
        assert await session.freeze_system_prompt() == (
            f"{RULE}\nSOUL (Identity) [readonly]\n{RULE}\nYou help.\n\n"
            f"{RULE}\nMEMORY (Learned facts) [1% — {tokens}/1100 tokens]\n{RULE}\n"
            "User likes coffee.\nUser prefers dark roast.\n\n"
            f"{RULE}\nNOTES\n{RULE}\n"
        )

    async def test_a_session_without_blocks_has_an_empty_prompt(self, store):
        assert await Session(store).freeze_system_prompt() == ""

    async def test_a_frozen_prompt_stays_whatever_is_written(self, store):
        session = Session(store, session_id="s", context=[{"label": "memory"}])
        prompt = await session.freeze_system_prompt()

        await session.replace_context_block("memory", "tea")
        await session.append_context_block("memory", "cake")
        await session.add_context("more", provider={"get": lambda: "more"})
        session.remove_context("memory")
        await session.append_message(says("m0"))

        assert await session.freeze_system_prompt() == prompt

    async def test_a_refresh_shows_what_was_written(self, store):
        session = Session(store, session_id="s", context=[{"label": "memory"}])
        await session.freeze_system_prompt()
        await session.replace_context_block("memory", "tea")

        refreshed = await session.refresh_system_prompt()

        assert refreshed.endswith("\ntea")
        assert await session.freeze_system_prompt() == refreshed

    async def test_a_cached_prompt_outlives_the_object_and_its_blocks(self, store):
        session = Session(store, session_id="s", context=[{"label": "memory"}])
        prompt = await session.with_cached_prompt().freeze_system_prompt()
        await session.replace_context_block("memory", "tea")

        again = Session(store, session_id="s").with_cached_prompt()
        again.with_context("soul", provider={"get": lambda: 1 / 0})

        assert await again.freeze_system_prompt() == prompt

    async def test_an_empty_cached_prompt_is_a_prompt(self, store):
        await Session(store, session_id="s").with_cached_prompt().freeze_system_prompt()

        again = Session(store, session_id="s", context=[{"label": "memory"}]).with_cached_prompt()

        assert await again.freeze_system_prompt() == ""

    async def test_every_session_has_its_own_cached_prompt(self, store):
        first = Session(store, session_id="s", context=[{"label": "a"}]).with_cached_prompt()
        second = Session(store, session_id="t", context=[{"label": "b"}]).with_cached_prompt()

        assert await first.freeze_system_prompt() != await second.freeze_system_prompt()

    async def test_without_a_cache_the_prompt_lives_as_long_as_the_object(self, store):
        session = Session(store, session_id="s", context=[{"label": "memory"}])
        await session.freeze_system_prompt()
        await session.replace_context_block("memory", "tea")

        again = Session(store, session_id="s", context=[{"label": "memory"}])

        assert "tea" in await again.freeze_system_prompt()

    async def test_freezing_at_the_same_time_gives_the_same_prompt(self, store):
        def reading(text):
            async def get():
                await asyncio.sleep(0)
                return text

            return {"get": get}

        sessions = [
            Session(store, session_id="s", context=[{"label": "soul", "provider": reading(text)}])
            for text in "abcdef"
        ]

        prompts = await asyncio.gather(
            *(one.with_cached_prompt().freeze_system_prompt() for one in sessions)
        )

        assert len(set(prompts)) == 1

    async def test_a_refresh_that_fails_changes_nothing(self, store):
        broken = Broken("kind")
        session = Session(store, session_id="s", context=[{"label": "soul", "provider": broken}])
        prompt = await session.with_cached_prompt().freeze_system_prompt()

        broken.is_broken = True
        with pytest.raises(OSError, match="broken"):
            await session.refresh_system_prompt()

        assert await session.freeze_system_prompt() == prompt
        again = Session(store, session_id="s").with_cached_prompt()
        assert await again.freeze_system_prompt() == prompt

    async def test_a_block_that_would_not_fit_is_not_written(self, store):
        session = Session(store, session_id="s", context=[{"label": "memory", "max_tokens": 3}])
        await session.replace_context_block("memory", "hello world")

        with pytest.raises(BlockError, match=r'Block "memory" exceeds max_tokens: 6 > 3'):
            await session.append_context_block("memory", "one more")

        again = Session(store, session_id="s", context=[{"label": "memory"}])
        assert (await again.get_context_block("memory")).content == "hello world"


class SkillContract(AsyncTests):
    @pytest.fixture
    def skills(self):
        documents = {"a": "text of a", "b": "text of b"}
        return {"get": lambda: "- a\n- b", "load": documents.get}

    @pytest.fixture
    def skilled(self, store, skills):
        return Session(store, session_id="s", context=[{"label": "skills", "provider": skills}])

    async def test_loading_marks_a_skill(self, skilled):
        tools = await skilled.tools()

        assert await tools["load_context"].execute(label="skills", key="a") == "text of a"
        assert await tools["load_context"].execute(label="skills", key="c") == "Not found: c"

        assert await skilled.get_loaded_skill_keys() == {"skills:a"}

    async def test_a_new_object_finds_out_what_is_loaded(self, store, skilled):
        await skilled.append_message(loads("m0", "a", "text of a"))
        await skilled.append_message(loads("m1", "b", "text of b"))
        await skilled.append_message(loads("m2", "b", "[skill unloaded: b]"))
        await skilled.append_message(loads("m3", "c", "Not found: c"))

        provider = {"get": lambda: "", "load": lambda key: None}
        again = Session(store, session_id="s", context=[{"label": "skills", "provider": provider}])

        assert await again.get_loaded_skill_keys() == {"skills:a"}

    async def test_first_calls_at_the_same_time_all_see_what_is_loaded(self, store, skills):
        await Session(store, session_id="s").append_message(loads("m0", "a", "text of a"))
        again = Session(store, session_id="s", context=[{"label": "skills", "provider": skills}])

        found = await asyncio.gather(*(again.get_loaded_skill_keys() for _ in range(3)))

        assert found == [{"skills:a"}] * 3

    async def test_what_a_summary_hides_is_still_loaded(self, store, skills, skilled):
        await skilled.append_message(loads("m0", "a", "text of a"))
        await fill(skilled, 3, 1)
        await skilled.add_compaction("sum", "m0", "m2")

        again = Session(store, session_id="s", context=[{"label": "skills", "provider": skills}])

        assert await again.get_loaded_skill_keys() == {"skills:a"}

    async def test_unloading_takes_the_text_out_of_every_branch(self, skilled):
        await skilled.append_message(loads("m0", "a", "text of a"))
        await fill(skilled, 3, 1)
        await skilled.append_message(loads("b", "a", "text of a"), "m1")
        await skilled.append_message(loads("other", "b", "text of b"))
        await skilled.set_leaf("m3")
        await skilled.add_compaction("sum", "m0", "m2")
        heard = Heard(skilled)

        assert await skilled.unload_skill("skills", "a")

        for name in ("m0", "b"):
            part = (await skilled.get_message(name))["parts"][0]
            assert part == {**loads(name, "a", "")["parts"][0], "output": "[skill unloaded: a]"}
        assert (await skilled.get_message("other"))["parts"][0]["output"] == "text of b"
        assert [data["message"]["id"] for data in heard.of("update")] == ["m0", "b"]
        assert await skilled.get_loaded_skill_keys() == set()
        assert await skilled.unload_skill("skills", "a") is False

    async def test_what_is_not_loaded_cannot_be_unloaded(self, skilled):
        assert await skilled.unload_skill("skills", "a") is False

    async def test_an_unloaded_skill_can_be_loaded_again(self, store, skills, skilled):
        await skilled.append_message(loads("m0", "a", "text of a"))
        assert await skilled.get_loaded_skill_keys() == set()  # nothing was loaded through it
        skilled = Session(store, session_id="s", context=[{"label": "skills", "provider": skills}])
        tools = await skilled.tools()

        unloaded = await tools["unload_context"].execute(label="skills", key="a")
        assert unloaded == 'Unloaded "a" from skills. Context reclaimed.'
        await tools["load_context"].execute(label="skills", key="a")

        assert await skilled.get_loaded_skill_keys() == {"skills:a"}

    async def test_what_is_loaded_goes_by_the_branch(self, skilled):
        await fill(skilled, 1)
        await skilled.append_message(loads("with", "a", "text of a"))
        await skilled.append_message(says("without"), "m0")
        assert await skilled.get_loaded_skill_keys() == set()

        await skilled.set_leaf("with")
        assert await skilled.get_loaded_skill_keys() == {"skills:a"}

        await skilled.append_message(says("new"), "without")
        assert await skilled.get_loaded_skill_keys() == set()

        await skilled.append_message(says("on"), "with")
        assert await skilled.get_loaded_skill_keys() == {"skills:a"}

        await skilled.delete_messages(["with"])
        assert await skilled.get_loaded_skill_keys() == set()

    async def test_a_clear_unloads_everything(self, skilled):
        await (await skilled.tools())["load_context"].execute(label="skills", key="a")

        await skilled.clear_messages()

        assert await skilled.get_loaded_skill_keys() == set()

    async def test_the_first_skill_block_finds_what_is_loaded(self, store, skills):
        session = Session(store, session_id="s")
        await session.append_message(loads("m0", "a", "text of a"))
        assert await session.get_loaded_skill_keys() == set()

        await session.add_context("skills", provider=skills)

        assert await session.get_loaded_skill_keys() == {"skills:a"}

    async def test_a_block_that_cannot_be_read_is_not_added(self, session):
        soul = Broken("tea")
        soul.is_broken = True
        with pytest.raises(OSError, match="soul is broken"):
            await session.add_context("soul", provider=soul)
        assert await session.get_context_blocks() == []
        soul.is_broken = False

        block = await session.add_context("soul", provider=soul)

        assert block.content == "tea"

    async def test_a_block_that_was_removed_and_added_again_has_its_skills(self, store, skills):
        await Session(store, session_id="s").append_message(loads("m0", "a", "text of a"))
        session = Session(store, session_id="s").with_context("skills", provider=skills)

        session.remove_context("skills")
        session.with_context("skills", provider=skills)

        assert await session.get_loaded_skill_keys() == {"skills:a"}

    async def test_a_removed_block_has_nothing_loaded(self, store, skills):
        blocks = [{"label": label, "provider": skills} for label in ("skills", "more")]
        await Session(store, session_id="s").append_message(loads("m0", "a", "text of a"))
        session = Session(store, session_id="s", context=blocks)
        assert await session.get_loaded_skill_keys() == {"skills:a"}

        assert session.remove_context("skills")
        assert await session.get_loaded_skill_keys() == set()

        await session.append_message(says("m1"), None)
        await session.set_leaf("m0")
        assert await session.get_loaded_skill_keys() == set()
