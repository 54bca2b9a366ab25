"""State modules: objects whose state can be taken and given back.

There are two kinds, told apart by their methods alone, so that no SDK is imported for this: those
with `state_dict` and `load_state_dict`, and those with `model_dump` and `model_validate`. What a
module gets is never shared: it may keep and change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workspace_session.errors import StateLoadFailed, StateNotSerializable
from workspace_session.files.state_bytes import Rendered, render_value
from workspace_session.model.canonical import compact, parse

_DICT = ("state_dict", "load_state_dict")
_MODEL = ("model_dump", "model_validate")


class PydanticModule:
    """A model that cannot be changed, as a module: `value` is replaced instead."""

    def __init__(self, model: Any) -> None:
        self.value = model

    def state_dict(self) -> Any:
        """The state of the present value."""
        return self.value.model_dump(mode="json")

    def load_state_dict(self, state: Any) -> None:
        """Make the value anew from a state."""
        self.value = type(self.value).model_validate(state)


def is_module(found: object) -> bool:
    """Whether an object has a state that can be taken and given back."""
    return _has(found, _DICT) or _has(found, _MODEL)


def check_modules(modules: Mapping[str, object]) -> None:
    """Raise `TypeError` for the first object that is no module."""
    for name, module in modules.items():
        if not is_module(module):
            needs = " nor ".join("/".join(names) for names in (_DICT, _MODEL))
            raise TypeError(f"module {name!r} has neither {needs}")


def render_modules(modules: Mapping[str, object]) -> dict[str, Rendered]:
    """Take every state, as the bytes that its file is to have."""
    check_modules(modules)
    return {name: _rendered(name, module) for name, module in modules.items()}


def take_state(name: str, module: object) -> Any:
    """The state of a module, sharing nothing with it."""
    try:
        return copy_of(_state_of(module))
    except StateNotSerializable as error:
        error.add_note(f"in the state of module {name!r}")
        raise


def load_module(name: str, module: object, state: Any) -> None:
    """Give a module its state; `StateLoadFailed` when it refuses it."""
    try:
        _load(module, state)
    except Exception as error:
        raise StateLoadFailed(name) from error


def copy_of(state: Any) -> Any:
    """The state as it would come back from a file, sharing nothing with the one given."""
    return parse(compact(state))


def _rendered(name: str, module: object) -> Rendered:
    try:
        return render_value(_state_of(module))
    except StateNotSerializable as error:
        error.add_note(f"in the state of module {name!r}")
        raise


def _state_of(module: Any) -> Any:
    return module.state_dict() if _has(module, _DICT) else module.model_dump(mode="json")


def _load(module: Any, state: Any) -> None:
    if _has(module, _DICT):
        module.load_state_dict(state)
        return
    if _is_frozen(module):
        raise TypeError("a frozen model is loaded through PydanticModule(model)")
    made = type(module).model_validate(state)
    # Past `__setattr__`, as pydantic itself does it: validators that run on assignment would see a
    # mixture of two states. Private attributes are not state, and stay.
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__"):
        if hasattr(made, name):
            object.__setattr__(module, name, getattr(made, name))


def _is_frozen(module: Any) -> bool:
    config = getattr(type(module), "model_config", None)
    return isinstance(config, Mapping) and bool(config.get("frozen"))


def _has(module: object, names: tuple[str, ...]) -> bool:
    return all(callable(getattr(module, name, None)) for name in names)
