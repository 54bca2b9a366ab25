"""A workspace as the content of a git repository: merging, preparing, and syncing with a remote."""

from workspace_session.git.install import Installed, install, installed
from workspace_session.git.merge import merge_files
from workspace_session.git.repository import GitFailed, Repository
from workspace_session.git.settle import settle_merge
from workspace_session.git.status import Status, status
from workspace_session.git.sync import Synced, sync
from workspace_session.model.union import merge_lines

__all__ = [
    "GitFailed",
    "Installed",
    "Repository",
    "Status",
    "Synced",
    "install",
    "installed",
    "merge_files",
    "merge_lines",
    "settle_merge",
    "status",
    "sync",
]
