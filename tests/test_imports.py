"""Who may import whom, and what the package shows to the world."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import workspace_session

PACKAGE = Path(workspace_session.__file__).parent

# A layer may use those named here, and itself. Whatever is not named, it may not.
LAYERS = {
    "errors": set(),
    "model": {"errors"},
    "files": {"errors", "model"},
    "search": {"errors", "model", "files"},
    "session": {"errors", "model"},
    "bridge": {"errors", "files"},
    "stores": {"errors", "model", "files", "search", "session", "bridge", "agent", "workspace"},
    "harness": {"errors", "model", "files", "search", "session", "bridge", "agent", "workspace"},
    "git": {"errors", "model", "files", "agent", "workspace"},
    "export": {"errors", "model", "files"},
    "agent": {
        "errors",
        "model",
        "files",
        "stores",
        "workspace",
    },  # the last two in a function or a hint
    "workspace": {"errors", "model", "files", "search", "agent"},
    "doctor": {"errors", "model", "files", "git", "agent", "workspace"},
    "postgres": {"errors", "stores"},
    "adapters": {"", "errors", "model", "files", "harness", "bridge"},  # other tools' files too
    # what commands need besides has no name at the top: values to draw, and whole layers
    "cli": {"", "errors", "model", "git", "adapters", "doctor", "export", "postgres"},
    "": {
        "errors",
        "model",
        "files",
        "search",
        "session",
        "stores",
        "harness",
        "agent",
        "git",
        "workspace",
    },
}

# What is needed from outside, and where; the standard library is open to all.
OUTSIDE = {
    "model": {"orjson"},
    "files": {"filelock", "watchdog"},
    "search": {"orjson", "whoosh"},
    "session": {"fsspec"},  # an extra, imported when it is used
    "stores": {"filelock", "psycopg"},  # the second is an extra, imported when it is used
    "export": {"markdown_it"},
    "cli": {"_typeshed", "click", "rich"},  # the first is for the type checker alone
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def layer_of(name: str) -> str:
    """The layer of a dotted module name below the package; `""` is the package itself."""
    return name.split(".")[1] if "." in name else ""


def dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found.add(str(node.module))
            if node.module == "workspace_session":
                found |= {
                    f"workspace_session.{alias.name}"
                    for alias in node.names
                    if is_module(alias.name)
                }
    return found


def is_module(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_a_module_uses_only_the_layers_below_it(path):
    own = layer_of(dotted(path))
    allowed = LAYERS[own] | {own}

    used = {
        layer_of(name) for name in imports_of(path) if name.split(".")[0] == "workspace_session"
    }

    assert used <= allowed


@pytest.mark.parametrize(
    "path",
    [path for path in modules() if layer_of(dotted(path)) != "adapters"],  # each has its own SDK
    ids=dotted,
)
def test_a_module_needs_from_outside_only_what_its_layer_may(path):
    own = layer_of(dotted(path))
    outside = {name.split(".")[0] for name in imports_of(path)} - set(sys.stdlib_module_names)

    assert outside - {"workspace_session", "_typeshed"} <= OUTSIDE.get(own, set())


def test_every_layer_that_exists_is_in_the_table():
    assert {layer_of(dotted(path)) for path in modules()} <= LAYERS.keys()


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_a_module_says_what_it_is(path):
    tree = ast.parse(path.read_text("utf-8"))

    assert ast.get_docstring(tree), "the docstring comes first"
    joins = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and joins_a_path(node)
    ]
    if layer_of(dotted(path)) == "files" and path.name != "layout.py":
        assert not joins, "only layout joins paths"


def joins_a_path(node: ast.BinOp) -> bool:
    return isinstance(node.right, ast.JoinedStr) or (
        isinstance(node.right, ast.Constant) and isinstance(node.right.value, str)
    )


def test_the_public_names_are_these():
    assert sorted(workspace_session.__all__) == sorted(PUBLIC.split())
    assert len(set(workspace_session.__all__)) == len(workspace_session.__all__)
    for name in workspace_session.__all__:
        assert getattr(workspace_session, name) is not None


PUBLIC = """
Purged Retention SessionStats Stats
AsyncEvents EntriesAdded Events SessionRemoved SessionReplaced Watch WorkspaceEvent
ABSENT AgentContextProvider AgentSearchProvider AgentSessionProvider AgentWorkspace AppendResult
Appended BlockError CompactContext CompactResult Compaction ContextBlock DuplicateBlock Entry
FileSkillProvider InvalidCompaction InvalidId InvalidMessage JsonSession LATEST MemoryStore
Message MissingProvider NamespaceMismatch NoCompactionFunction NotAWorkspace NotSupported
ObjectSkillProvider PostgresContextProvider PostgresSearchProvider PostgresSessionProvider
PostgresStore Problem PydanticModule RecentHistory RowStat RuleBroken SearchHit SearchHits
SearchNotSupported Session SessionDeleted SessionError SessionEvent SessionExists SessionInUse
SessionChanged
SessionInfo SessionManager SessionProvider SessionStore SessionTree SharedPromptStore
StateConflict StateCorrupt StateLoadFailed StateNotSerializable StateUnmergeable TokenCountInput
Tool Trashed UnknownMessage UnknownParent UnknownSession UnsafePath Versioned Workspace
WorkspaceBusy WorkspaceError WorkspaceSession absorbed_summaries align_backward align_forward
apply_overlays check_provider create_compact_function estimate_message_tokens estimate_tokens
is_compaction_message sanitize_tool_pairs RuntimeContext MemoryFlushManager WorkspaceManager Merged merge_states OffloadResult NamespaceFactory HarnessClosed ReentrantCall TurnConflict TurnNotSaved PerCall CompactionHook ConflictPolicy current_context MemoryFlushHook Harness SessionPersistenceHook WorkspaceContextHook close_dangling SessionTools BoundContext
"""
