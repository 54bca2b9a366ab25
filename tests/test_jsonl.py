"""Lines read from the end of a file: the same as from its beginning, whatever is read at once."""

from __future__ import annotations

import os
from tempfile import TemporaryFile

from hypothesis import given
from hypothesis import strategies as st

from workspace_session.files.jsonl import lines_backwards


@given(
    st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"."))), st.integers(1, 20)
)
def test_backwards_gives_the_complete_lines_and_where_they_end(lines, block):
    *whole, _torn = lines or [b""]
    data = b"\n".join(lines)
    expected, end = [], 0
    for line in whole:
        end += len(line) + 1
        expected.append((end, line))

    with TemporaryFile() as file:
        file.write(data)
        file.flush()
        found = list(lines_backwards(file.fileno(), os.fstat(file.fileno()).st_size, block))

    assert found == expected[::-1]
