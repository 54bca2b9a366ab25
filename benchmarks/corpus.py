"""Messages as agents write them: the same ones for every run and every store.

The shape is that of coding sessions: a short request, then several tool calls with results of very
uneven length, then an answer. Lengths are log-normal, fitted to sessions of about 2,000 messages;
the items are those of the OpenAI Responses API, because that is what the peer's users store.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any, TypeAlias

import orjson

Item: TypeAlias = dict[str, Any]

# (mean, deviation) of the logarithm of the length in characters
_REQUEST = (4.2, 1.3)
_REMARK = (4.6, 1.1)
_INPUT = (5.4, 1.2)
_OUTPUT = (5.5, 1.7)
_LONGEST = 50_000
_CALLS_PER_REQUEST = 5

_ENGLISH = """
    the a to of and in is it that for on with this not be are from as if can we when which should
    file test error function class return import value list path name index session message user
    branch commit merge deploy build server client request response token cache lock write read
    append parent child tree leaf summary context search result table column row query schema type
    def self None True False async await with open json dict str int print assert raise except try
    {"key": [1, 2, 3]}, "quoted" path/to/file.py:120: \\d+\\s* a\\b C:\\temp <tag/> // -- /* */
"""
_OTHER = "naïve café Größe übung señor 用户 喜欢 咖啡 文件 测试 かな 한국어 🙂 →"
_SEPARATORS = [" "] * 12 + ["\n", "\n    ", ", ", ". "]


def stream(seed: int = 7) -> Iterator[Item]:
    """An endless conversation; the same seed gives the same messages."""
    rng = Random(seed)
    # Most sessions are plain ASCII; every tenth passage is not.
    english = _prose(rng, _ENGLISH.split(), 300_000)
    mixed = _prose(rng, (_ENGLISH + _OTHER).split(), 300_000)
    prose = [english] * 9 + [mixed]
    turn = 0
    while True:
        yield {"role": "user", "content": _passage(rng, prose, _REQUEST)}
        for _ in range(_geometric(rng, _CALLS_PER_REQUEST)):
            turn += 1
            if turn % 2:
                yield _answer(_passage(rng, prose, _REMARK))
            yield from _tool_use(rng, prose, f"call_{turn:08x}")
        yield _answer(_passage(rng, prose, _REMARK))


def batches(size: int, seed: int = 7) -> Iterator[list[Item]]:
    """The same conversation in pieces."""
    items = stream(seed)
    while True:
        yield list(islice(items, size))


def _answer(text: str) -> Item:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "status": "completed", "content": content}


def _tool_use(rng: Random, prose: list[str], call_id: str) -> Iterator[Item]:
    given = {"path": f"src/module_{rng.randrange(200)}.py", "text": _passage(rng, prose, _INPUT)}
    yield {
        "type": "function_call",
        "call_id": call_id,
        "name": rng.choice(["read", "edit", "bash", "search"]),
        "arguments": orjson.dumps(given).decode(),
    }
    output = _passage(rng, prose, _OUTPUT)
    yield {"type": "function_call_output", "call_id": call_id, "output": output}


def _prose(rng: Random, words: list[str], length: int) -> str:
    pieces: list[str] = []
    made = 0
    while made < length:
        pieces += (rng.choice(words), rng.choice(_SEPARATORS))
        made += len(pieces[-2]) + len(pieces[-1])
    return "".join(pieces)


def _passage(rng: Random, prose: list[str], distribution: tuple[float, float]) -> str:
    length = min(int(rng.lognormvariate(*distribution)) + 1, _LONGEST)
    source = rng.choice(prose)
    start = rng.randrange(len(source) - length)
    return source[start : start + length]


def _geometric(rng: Random, mean: int) -> int:
    count = 1
    while rng.random() > 1 / mean:
        count += 1
    return count
