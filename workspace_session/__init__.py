"""A file-based workspace store for the conversations and state of AI agents."""

from workspace_session.agent import AgentWorkspace
from workspace_session.errors import (
    BlockError,
    DuplicateBlock,
    HarnessClosed,
    InvalidCompaction,
    InvalidId,
    InvalidMessage,
    MissingProvider,
    NamespaceMismatch,
    NoCompactionFunction,
    NotAWorkspace,
    NotSupported,
    ReentrantCall,
    RuleBroken,
    SearchNotSupported,
    SessionChanged,
    SessionDeleted,
    SessionError,
    SessionExists,
    SessionInUse,
    SharedPromptStore,
    StateConflict,
    StateCorrupt,
    StateLoadFailed,
    StateNotSerializable,
    StateUnmergeable,
    TurnConflict,
    TurnNotSaved,
    UnknownMessage,
    UnknownParent,
    UnknownSession,
    UnsafePath,
    WorkspaceBusy,
    WorkspaceError,
)
from workspace_session.files.follow import (
    EntriesAdded,
    SessionRemoved,
    SessionReplaced,
    WorkspaceEvent,
)
from workspace_session.files.purge import Purged
from workspace_session.files.retention import Retention
from workspace_session.files.session_tree import SessionTree
from workspace_session.files.state import (
    ABSENT,
    JsonSession,
    PydanticModule,
    Versioned,
    WorkspaceSession,
)
from workspace_session.files.stats import SessionStats, Stats
from workspace_session.files.trash import Trashed
from workspace_session.files.verify import Problem
from workspace_session.files.watch import AsyncEvents, Events, Watch
from workspace_session.harness.agents import PerCall
from workspace_session.harness.compaction import CompactionHook
from workspace_session.harness.conflicts import ConflictPolicy
from workspace_session.harness.context import BoundContext, RuntimeContext, current_context
from workspace_session.harness.dangling import close_dangling
from workspace_session.harness.flush import MemoryFlushManager
from workspace_session.harness.flushing import MemoryFlushHook
from workspace_session.harness.harness import Harness
from workspace_session.harness.manager import WorkspaceManager
from workspace_session.harness.persistence import SessionPersistenceHook
from workspace_session.harness.tools import SessionTools
from workspace_session.harness.workspace_prompt import WorkspaceContextHook
from workspace_session.model.entries import Entry, Message
from workspace_session.model.hits import SearchHit, SearchHits
from workspace_session.model.info import SessionInfo
from workspace_session.model.merge import Merged, merge_states
from workspace_session.model.offloading import OffloadResult
from workspace_session.model.placing import LATEST, Appended
from workspace_session.model.tokens import estimate_message_tokens, estimate_tokens
from workspace_session.session.check import check_provider
from workspace_session.session.manager import SessionManager
from workspace_session.session.protocols import SessionProvider, SessionStore
from workspace_session.session.session import Session
from workspace_session.session.shapes import apply_overlays
from workspace_session.session.skill_files import FileSkillProvider
from workspace_session.session.skill_objects import ObjectSkillProvider
from workspace_session.session.summaries import absorbed_summaries, create_compact_function
from workspace_session.session.tool import Tool
from workspace_session.session.tool_parts import (
    align_backward,
    align_forward,
    sanitize_tool_pairs,
)
from workspace_session.session.values import (
    AppendResult,
    CompactContext,
    Compaction,
    CompactResult,
    ContextBlock,
    RecentHistory,
    RowStat,
    SessionEvent,
    TokenCountInput,
    is_compaction_message,
)
from workspace_session.stores.files import AgentSessionProvider
from workspace_session.stores.memory import MemoryStore
from workspace_session.stores.postgres.context import PostgresContextProvider
from workspace_session.stores.postgres.entries import PostgresSearchProvider
from workspace_session.stores.postgres.provider import PostgresSessionProvider
from workspace_session.stores.postgres.store import PostgresStore
from workspace_session.stores.snapshots import AgentContextProvider, AgentSearchProvider
from workspace_session.workspace import NamespaceFactory, Workspace

__version__ = "0.1.0"

__all__ = [
    "ABSENT",
    "LATEST",
    "AgentContextProvider",
    "AgentSearchProvider",
    "AgentSessionProvider",
    "AgentWorkspace",
    "AppendResult",
    "Appended",
    "AsyncEvents",
    "BlockError",
    "BoundContext",
    "CompactContext",
    "CompactResult",
    "Compaction",
    "CompactionHook",
    "ConflictPolicy",
    "ContextBlock",
    "DuplicateBlock",
    "EntriesAdded",
    "Entry",
    "Events",
    "FileSkillProvider",
    "Harness",
    "HarnessClosed",
    "InvalidCompaction",
    "InvalidId",
    "InvalidMessage",
    "JsonSession",
    "MemoryFlushHook",
    "MemoryFlushManager",
    "MemoryStore",
    "Merged",
    "Message",
    "MissingProvider",
    "NamespaceFactory",
    "NamespaceMismatch",
    "NoCompactionFunction",
    "NotAWorkspace",
    "NotSupported",
    "ObjectSkillProvider",
    "OffloadResult",
    "PerCall",
    "PostgresContextProvider",
    "PostgresSearchProvider",
    "PostgresSessionProvider",
    "PostgresStore",
    "Problem",
    "Purged",
    "PydanticModule",
    "RecentHistory",
    "ReentrantCall",
    "Retention",
    "RowStat",
    "RuleBroken",
    "RuntimeContext",
    "SearchHit",
    "SearchHits",
    "SearchNotSupported",
    "Session",
    "SessionChanged",
    "SessionDeleted",
    "SessionError",
    "SessionEvent",
    "SessionExists",
    "SessionInUse",
    "SessionInfo",
    "SessionManager",
    "SessionPersistenceHook",
    "SessionProvider",
    "SessionRemoved",
    "SessionReplaced",
    "SessionStats",
    "SessionStore",
    "SessionTools",
    "SessionTree",
    "SharedPromptStore",
    "StateConflict",
    "StateCorrupt",
    "StateLoadFailed",
    "StateNotSerializable",
    "StateUnmergeable",
    "Stats",
    "TokenCountInput",
    "Tool",
    "Trashed",
    "TurnConflict",
    "TurnNotSaved",
    "UnknownMessage",
    "UnknownParent",
    "UnknownSession",
    "UnsafePath",
    "Versioned",
    "Watch",
    "Workspace",
    "WorkspaceBusy",
    "WorkspaceContextHook",
    "WorkspaceError",
    "WorkspaceEvent",
    "WorkspaceManager",
    "WorkspaceSession",
    "absorbed_summaries",
    "align_backward",
    "align_forward",
    "apply_overlays",
    "check_provider",
    "close_dangling",
    "create_compact_function",
    "current_context",
    "estimate_message_tokens",
    "estimate_tokens",
    "is_compaction_message",
    "merge_states",
    "sanitize_tool_pairs",
]
