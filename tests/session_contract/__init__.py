"""What sessions promise on every store, in terms of the public names alone.

A store's tests subclass `SessionStoreContract` and give a `store` fixture: an empty store. A new
`Session` on it stands for a restart, as far as a store can have one inside a process.
"""

from __future__ import annotations

from session_contract.building import BuildingContract
from session_contract.changes import ChangeContract
from session_contract.compaction import CompactionContract
from session_contract.context import PromptContract, SkillContract
from session_contract.descent import DescentContract
from session_contract.estimates import EstimateContract
from session_contract.events import EventContract
from session_contract.flights import FlightContract
from session_contract.manager import ManagerContract
from session_contract.messages import MessageContract
from session_contract.overlays import OverlayContract
from session_contract.reading import ReadingContract
from session_contract.search import SearchContract
from session_contract.shared_use import SharedUseContract
from session_contract.wrong_use import WrongUseContract


class SessionStoreContract(
    BuildingContract,
    MessageContract,
    ChangeContract,
    ReadingContract,
    OverlayContract,
    EstimateContract,
    CompactionContract,
    FlightContract,
    PromptContract,
    SkillContract,
    ManagerContract,
    DescentContract,
    EventContract,
    SearchContract,
    SharedUseContract,
    WrongUseContract,
):
    """What every store promises. Subclass it and give a `store` fixture."""
