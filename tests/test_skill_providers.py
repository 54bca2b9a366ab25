"""Skills in files and objects: one contract for both, then what only one of them has."""

from __future__ import annotations

import asyncio
import builtins
import os
import threading
import uuid

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspace_session.session import front_matter
from workspace_session.session.context import ContextBlocks
from workspace_session.session.skill_documents import rewritten, text_of
from workspace_session.session.skill_files import FileSkillProvider
from workspace_session.session.skill_objects import ObjectSkillProvider


def run(awaitable):
    return asyncio.run(awaitable)


class SkillProviderContract:
    """What every provider of skill documents promises. Subclass it and give `make` and `files`."""

    @pytest.fixture
    def make(self):
        raise NotImplementedError

    @pytest.fixture
    def put(self, files):
        def put(path, text):
            files[path] = text.encode()

        return put

    def test_nothing_there_is_none(self, make):
        assert run(make().get()) is None
        assert run(make().load("a")) is None

    def test_the_listing_is_sorted_and_says_what_each_is_about(self, make, put):
        put("c.md", "no front matter")
        put("a/SKILL.md", "---\nname: Alpha\ndescription: First\n---\nA")
        put("b.md", "---\nname: Beta\n---\nB")
        put("d.md", "---\nother: x\n---\nD")

        assert run(make().get()) == "- a: First\n- b: Beta\n- c\n- d"

    def test_a_document_is_loaded_without_its_front_matter(self, make, put):
        put("a.md", "---\nname: A\n---\n\n# Title\n---\nend")
        put("b/SKILL.md", "no front matter")

        assert run(make().load("a")) == "\n# Title\n---\nend"
        assert run(make().load("b")) == "no front matter"

    def test_the_document_in_its_own_directory_is_preferred(self, make, put):
        put("a.md", "---\nname: file\n---\nfile")
        put("a/SKILL.md", "---\nname: directory\n---\ndirectory")

        assert run(make().load("a")) == "directory"
        assert run(make().get()) == "- a: directory"

    def test_a_new_document_is_a_markdown_file(self, make, files):
        run(make().set("a", "text", "About a"))

        assert files["a.md"] == b"---\ndescription: About a\n---\ntext"
        assert run(make().get()) == "- a: About a"
        assert run(make().load("a")) == "text"

    def test_a_new_document_without_a_description_is_its_text(self, make, files):
        run(make().set("a", "text"))

        assert files["a.md"] == b"text"

    def test_a_document_is_replaced_where_it_is(self, make, put, files):
        put("a/SKILL.md", "old")
        put("b.md", "old")

        run(make().set("a", "new"))
        run(make().set("b", "new"))

        assert dict(files) == {"a/SKILL.md": b"new", "b.md": b"new"}

    def test_other_fields_stay_byte_for_byte(self, make, put, files):
        before = "---\n# note\nname:   'A'\ndescription: >-\n  old\n\n  text\ntags:\n- x\n---\nold"
        put("a.md", before)

        run(make().set("a", "new", "New text"))

        assert files["a.md"].decode() == (
            "---\n# note\nname:   'A'\ndescription: New text\ntags:\n- x\n---\nnew"
        )

    def test_without_a_description_the_old_one_stays(self, make, put, files):
        put("a.md", "---\ndescription: old\n---\nold")

        run(make().set("a", "new"))

        assert files["a.md"] == b"---\ndescription: old\n---\nnew"

    @pytest.mark.parametrize(
        "key", ["", ".", "..", "../a", "a/b", ".hidden", "-a", "a b", "é", "a\n"]
    )
    def test_other_keys_are_not_found_and_cannot_be_written(self, make, files, key):
        assert run(make().load(key)) is None
        with pytest.raises(ValueError, match="cannot have the key"):
            run(make().set(key, "text"))
        assert dict(files) == {}

    def test_a_file_may_be_called_like_the_document_of_a_directory(self, make, put):
        put("SKILL.md", "x")

        assert run(make().get()) == "- SKILL"
        assert run(make().load("SKILL")) == "x"

    def test_names_that_are_no_keys_are_not_listed(self, make, put):
        put(".hidden.md", "x")
        put("a b.md", "x")
        put("ok-1.2_x.md", "x")

        assert run(make().get()) == "- ok-1.2_x"

    def test_a_directory_may_be_called_like_a_document(self, make, put):
        put("notes.md/other.txt", "x")
        put("real.md", "x")

        assert run(make().get()) == "- real"
        assert run(make().load("notes")) is None

    def test_an_allow_list_holds_for_listing_and_loading_but_not_for_writing(self, make, put):
        for key in "abc":
            put(f"{key}.md", key)
        provider = make(keys=["c", "a", "missing", "../x"])

        assert run(provider.get()) == "- a\n- c"
        assert run(provider.load("a")) == "a"
        assert run(provider.load("b")) is None
        run(provider.set("b", "written"))
        assert run(make().load("b")) == "written"

    def test_one_string_is_no_allow_list(self, make):
        with pytest.raises(TypeError, match="not one string"):
            make(keys="abc")

    def test_a_read_only_provider_makes_a_block_that_is_not_writable(self, make):
        for writable in (True, False):
            blocks = ContextBlocks(lambda label: None)
            blocks.register("skills", provider=make(writable=writable))
            block = run(blocks.block("skills"))

            assert (block.is_skill, block.writable) == (True, writable)

    def test_the_loop_is_not_kept_waiting(self, make, put, monkeypatch):
        put("a.md", "x")
        provider, threads = make(), set()
        for name in ("_fetch", "_fetch_all", "_store"):
            real = getattr(provider, name)

            def noting(*arguments, real=real):
                threads.add(threading.current_thread())
                return real(*arguments)

            monkeypatch.setattr(provider, name, noting)

        async def use():
            await provider.get()
            await provider.load("a")
            await provider.set("a", "y")

        run(use())

        assert threads
        assert threading.main_thread() not in threads

    def test_text_in_any_script_comes_back(self, make):
        run(make().set("a", "用户喜欢咖啡 \r\n☕", "描述: “x”"))

        assert run(make().load("a")) == "用户喜欢咖啡 \r\n☕"
        assert run(make().get()) == "- a: 描述: “x”"

    def test_bytes_that_are_no_text_are_shown_as_such(self, make, files):
        files["a.md"] = b"---\nname: \xff\n---\nx\xffy"

        assert run(make().load("a")) == "x\ufffdy"
        assert run(make().get()) == "- a: \ufffd"

    def test_half_a_character_is_stored_as_a_replacement(self, make):
        run(make().set("a", "x\ud800y", "\udc00"))

        assert run(make().load("a")) == "x\ufffdy"


class Files:
    """A directory seen as a mapping of paths to bytes."""

    def __init__(self, root):
        self.root = root

    def __setitem__(self, path, data):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(data)

    def __getitem__(self, path):
        return (self.root / path).read_bytes()

    def keys(self):
        found = (path for path in self.root.rglob("*") if path.is_file())
        return [str(path.relative_to(self.root)) for path in found]


class TestFiles(SkillProviderContract):
    @pytest.fixture
    def files(self, tmp_path):
        return Files(tmp_path / "skills")

    @pytest.fixture
    def make(self, files):
        return lambda **options: FileSkillProvider(files.root, **options)

    def test_a_link_out_of_the_directory_is_neither_read_nor_written(self, make, put, tmp_path):
        put("kept.md", "kept")
        outside = tmp_path / "outside.md"
        outside.write_text("secret")
        os.symlink(outside, tmp_path / "skills" / "a.md")
        os.symlink(tmp_path, tmp_path / "skills" / "b")
        (tmp_path / "SKILL.md").write_text("secret")

        assert run(make().get()) == "- kept"
        for key in "ab":
            assert run(make().load(key)) is None
            with pytest.raises(ValueError, match="leads out"):
                run(make().set(key, "text"))
        assert outside.read_text() == (tmp_path / "SKILL.md").read_text() == "secret"

    def test_a_dangling_link_out_of_the_directory_is_not_followed(self, make, files, tmp_path):
        files.root.mkdir()
        os.symlink(tmp_path / "new.md", files.root / "a.md")

        with pytest.raises(ValueError, match="leads out"):
            run(make().set("a", "text"))

        assert not (tmp_path / "new.md").exists()

    def test_a_link_inside_the_directory_is_written_through(self, make, put, files):
        put("real.md", "old")
        os.symlink("real.md", files.root / "a.md")

        run(make().set("a", "new"))

        assert files["real.md"] == b"new"
        assert (files.root / "a.md").is_symlink()

    def test_a_replaced_file_keeps_its_mode(self, make, put, files):
        put("a.md", "old")
        (files.root / "a.md").chmod(0o640)

        run(make().set("a", "new"))

        assert (files.root / "a.md").stat().st_mode & 0o777 == 0o640

    def test_a_write_that_fails_leaves_the_old_document_and_nothing_else(
        self, make, put, files, monkeypatch
    ):
        put("a.md", "old")

        def refuse(descriptor):
            raise OSError("disk full")

        monkeypatch.setattr(os, "fsync", refuse)
        with pytest.raises(OSError, match="disk full"):
            run(make().set("a", "new"))

        assert dict(files) == {"a.md": b"old"}

    def test_a_directory_may_be_given_as_a_string(self, put, files):
        put("a.md", "x")

        assert run(FileSkillProvider(str(files.root)).load("a")) == "x"


class Objects:
    """The objects below a path of the in-memory file system, as a mapping."""

    def __init__(self, base):
        self.base = base
        self.system = fsspec.filesystem("memory")

    def __setitem__(self, path, data):
        self.system.pipe_file(f"{self.base}{path}", data)

    def __getitem__(self, path):
        return self.system.cat_file(f"{self.base}{path}")

    def keys(self):
        root = self.base.rpartition("/")[0]
        found = self.system.find(root) if self.system.exists(root) else []
        return [path.removeprefix(self.base) for path in found]


class TestObjects(SkillProviderContract):
    prefix = ""

    @pytest.fixture
    def root(self):
        root = f"/{uuid.uuid4().hex}"
        yield root
        system = fsspec.filesystem("memory")
        if system.exists(root):
            system.rm(root, recursive=True)

    @pytest.fixture
    def files(self, root):
        return Objects(f"{root}/{self.prefix}")

    @pytest.fixture
    def make(self, root):
        return lambda **options: ObjectSkillProvider(f"memory:/{root}", self.prefix, **options)

    def test_an_object_may_have_no_ending(self, make, put, files):
        put("plain", "---\ndescription: Plain\n---\nold")

        assert run(make().get()) == "- plain: Plain"
        run(make().set("plain", "new"))
        assert dict(files) == {"plain": b"---\ndescription: Plain\n---\nnew"}

    def test_an_ending_is_preferred_to_none(self, make, put):
        put("a", "plain")
        put("a.md", "markdown")

        assert run(make().load("a")) == "markdown"

    def test_what_lies_deeper_is_not_a_document(self, make, put):
        put("a/notes.md", "x")
        put("a/b/SKILL.md", "x")

        assert run(make().get()) is None

    def test_a_key_that_is_not_allowed_is_not_even_fetched(self, make, put, monkeypatch):
        put("a.md", "x")
        put("b.md", "x")
        fetched = []
        real = type(fsspec.filesystem("memory")).cat_file

        def noting(self, path, *arguments, **options):
            fetched.append(path.rpartition("/")[2])
            return real(self, path, *arguments, **options)

        monkeypatch.setattr(type(fsspec.filesystem("memory")), "cat_file", noting)
        provider = make(keys=["a"])
        run(provider.get())
        run(provider.load("a"))
        run(provider.load("b"))

        assert "a.md" in " ".join(fetched)
        assert not any("b" in name for name in fetched)

    def test_a_store_that_fails_is_not_an_empty_store(self, make, put, monkeypatch):
        put("a.md", "x")

        def refuse(self, path, *arguments, **options):
            raise PermissionError(path)

        monkeypatch.setattr(type(fsspec.filesystem("memory")), "cat_file", refuse)

        with pytest.raises(PermissionError):
            run(make().get())
        with pytest.raises(PermissionError):
            run(make().load("a"))


class TestObjectsBelowADirectory(TestObjects):
    prefix = "team/skills/"


class TestObjectsWithAPrefix(TestObjects):
    prefix = "skill-"

    def test_objects_with_another_prefix_are_not_listed(self, make, put, root):
        put("a.md", "x")
        fsspec.filesystem("memory").pipe_file(f"{root}/other-b.md", b"x")

        assert run(make().get()) == "- a"


def test_objects_may_be_local_files(tmp_path):
    provider = ObjectSkillProvider(f"file://{tmp_path}", "new/skills/")

    run(provider.set("a", "text", "About"))

    assert (tmp_path / "new/skills/a.md").read_text() == "---\ndescription: About\n---\ntext"
    assert run(provider.get()) == "- a: About"
    assert run(provider.load("a")) == "text"


def test_options_reach_the_file_system(tmp_path):
    (tmp_path / "a.md").write_text("x")
    provider = ObjectSkillProvider("dir://", path=str(tmp_path), target_protocol="file")

    assert run(provider.get()) == "- a"


def test_without_fsspec_the_error_says_how_to_get_it(monkeypatch):
    real = builtins.__import__

    def refuse(name, *arguments, **options):
        if name.startswith("fsspec"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)

    with pytest.raises(ImportError) as caught:
        ObjectSkillProvider("memory://x")
    assert "pip install 'workspace-session[object]'" in str(caught.value)


# -- front matter ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("plain text", "plain text"),
        ("  spaced   out ", "spaced out"),
        ("'it''s'", "it's"),
        ('"a \\"b\\" \\u00e9"', 'a "b" é'),
        ('"\\x41"', "\\x41"),
        (">-\n  folded\n  text", "folded text"),
        ("|\n  kept\n\n  text", "kept text"),
        ("first\n  second", "first second"),
        ("a: b", "a: b"),
        ("", ""),
        ('"', '"'),
    ],
)
def test_values_are_read_as_one_line(written, value):
    front, _ = front_matter.split(f"---\ndescription: {written}\nname: x\n---\n".encode())

    assert front_matter.fields(front) == {"description": value, "name": "x"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---",
        "---\n",
        "---\nname: x\n",
        "---\nA rule, then a sentence.\n---\n",
        "---\n- a list\n---\n",
        "text\n---\nname: x\n---\n",
        "----\nname: x\n----\n",
        "---\nname:x\n---\n",
    ],
)
def test_what_does_not_look_like_fields_is_text(text):
    assert front_matter.split(text.encode()) == ([], text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: x\n---\nbody",
        "---\r\nname: x\r\n---\r\nbody",
        "\ufeff---\nname: x\n---\nbody",
        "--- \nname: x\n\n# comment\n---\t\nbody",
        "---\nname: x\nmeta:\n  name: inner\nlist:\n- a: 1\n---\nbody",
    ],
)
def test_front_matter_ends_at_its_fence(text):
    front, body = front_matter.split(text.encode())

    assert body == b"body"
    assert front_matter.fields(front)["name"] == "x"


def test_line_endings_are_kept_and_used():
    old = b"---\r\nname: x\r\n---\r\nold"

    assert rewritten(old, "new", "d") == b"---\r\nname: x\r\ndescription: d\r\n---\r\nnew"


def test_a_fence_at_the_end_of_the_file_gets_its_newline():
    assert rewritten(b"---\nname: x\n---", "new", None) == b"---\nname: x\n---\nnew"


def test_text_that_looks_like_front_matter_stays_text():
    content = "---\nname: x\n---\nbody"

    assert text_of(rewritten(None, content, None)) == content
    assert text_of(rewritten(None, content, "about")) == content
    assert text_of(rewritten(rewritten(None, content, None), "plain", None)) == "plain"


def test_a_long_line_costs_no_more_than_its_length():
    front_matter.split(b"---\na" + b" " * 1_000_000 + b"\n---\n")


lines = st.text(st.sampled_from("-: #'\"\n\rabn>|\\é") | st.characters(codec="utf-8"), max_size=30)


@given(lines, lines, lines, st.booleans())
def test_what_was_written_is_what_is_read(old, content, description, described):
    written = rewritten(old.encode(), content, description if described else None)

    assert text_of(written) == content
    if described:
        front, _ = front_matter.split(written)
        assert front_matter.fields(front)["description"] == " ".join(description.split())


@given(lines)
def test_any_bytes_are_split_without_loss(text):
    data = text.encode()
    front, body = front_matter.split(data)

    assert b"".join(front) + body == data
