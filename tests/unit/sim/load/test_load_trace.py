"""Traces: valid files are read; each problem of a file has its line, its code and a fix."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import a_vm, coded, figures, suggested
from equipoise.errors import InputProblem, InvalidInput, MissingExtra
from equipoise.model.scenario.load import Load, TraceLoad
from equipoise.sim.load import LoadDemands, TraceReader

BITBRAINS = """\
Timestamp [ms];\tCPU cores;\tCPU capacity provisioned [MHZ];\tCPU usage [MHZ];\tCPU usage [%];\t\
Memory capacity provisioned [KB];\tMemory usage [KB];\tDisk read throughput [KB/s];\t\
Disk write throughput [KB/s];\tNetwork received throughput [KB/s];\t\
Network transmitted throughput [KB/s]
1376314846;\t4;\t11703.99824;\t10912.027692426667;\t93.23333333333333;\t6.7108864E7;\t\
6129274.4;\t0.13333333333333333;\t20831.2;\t1.2;\t1.2666666666666666
1376315146;\t4;\t11703.99824;\t10890.570362320001;\t93.05;\t6.7108864E7;\t\
6755624.0;\t1.3333333333333333;\t18963.2;\t1.0;\t1.0
1376315446;\t4;\t11703.99824;\t10434.114431;\t89.15;\t6.7108864E7;\t\
9947288.0;\t5.2;\t16243.733333333334;\t1.0;\t0.9333333333333333
"""


def read(folder: Path, content: str | bytes, **fields: Any) -> tuple[list[int], list[float]]:
    name = fields.pop("file", "t.csv")
    raw = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(raw)
    times, levels = TraceReader(folder).read(TraceLoad(file=name, **fields))
    return times.tolist(), levels.tolist()


def refusal(folder: Path, content: str | bytes, **fields: Any) -> tuple[InputProblem, ...]:
    with pytest.raises(InvalidInput) as caught:
        read(folder, content, **fields)
    assert caught.value.source == str(folder / fields.get("file", "t.csv"))
    return caught.value.problems


def codes(problems: tuple[InputProblem, ...]) -> list[tuple[int | None, str]]:
    return [(problem.line, problem.code) for problem in problems]


def messages(folder: Path, content: str | bytes, **fields: Any) -> list[str]:
    return [str(problem) for problem in refusal(folder, content, **fields)]


def rows(*cells: tuple[object, object]) -> str:
    return "\n".join(["at_s,value", *(f"{time},{value}" for time, value in cells), ""])


def parquet(folder: Path, name: str = "t.parquet", **columns: Any) -> None:
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), folder / name)


def test_the_first_row_is_the_start_and_times_become_milliseconds(tmp_path: Path) -> None:
    assert read(tmp_path, rows((100, 1), (100.5, 2.5), (103, 0))) == ([0, 500, 3000], [1, 2.5, 0])


def test_units_of_time_and_a_scale_are_applied(tmp_path: Path) -> None:
    text = "ms,mhz\n5000,1\n6500,2\n"
    fields = {"time": "ms", "value": "mhz", "time_per_s": 1000, "scale": 2.5}
    assert read(tmp_path, text, **fields) == ([0, 1500], [2.5, 5])


@pytest.mark.parametrize(
    "text",
    [
        "at_s;value\n0;1\n1;2\n",
        "at_s\tvalue\n0\t1\n1\t2\n",
        "\ufeffat_s,value\r\n0,1\r\n1,2\r\n",
        'value,"at_s"\n1,"0"\n2,"1"',
        "at_s , 'value'\n 0 , 1 \n 1 , 2 \n",
        "\n\nat_s,value\n\n0,1\n,\n1,2\n\n",
        '"a, b";at_s;value\n"x;y";0;1\nz;1;2\n',
        'at_s;\t"value"\n0;\t"1"\n1;\t"2"\n',
        "at_s,value,c\n0,1\n1,2,3,4\n",
    ],
)
def test_delimiters_blanks_and_quotes_are_detected(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == ([0, 1000], [1, 2])


def test_the_public_traces_of_bitbrains_are_read_as_they_are(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"time": "Timestamp [ms]", "value": "CPU usage [MHZ]"}
    times, levels = read(tmp_path, BITBRAINS, **fields)
    assert times == [0, 300_000, 600_000]
    assert levels == [10912.027692426667, 10890.570362320001, 10434.114431]
    assert read(tmp_path, BITBRAINS, **fields, time_per_s=1000)[0] == [0, 300, 600]
    memory = read(tmp_path, BITBRAINS, **fields | {"value": "Memory usage [KB]", "scale": 1 / 1024})
    assert memory[1][0] == pytest.approx(5985.6195)


def test_a_parquet_trace_equals_the_csv_one(tmp_path: Path) -> None:
    parquet(tmp_path, at_s=[10, 12, 15], value=[1.5, 0.0, 3.25], other=["x", "y", None])
    (tmp_path / "t.csv").write_text(rows((10, 1.5), (12, 0.0), (15, 3.25)))
    reader = TraceReader(tmp_path)
    csv, columns = (reader.read(TraceLoad(file=name, scale=3)) for name in ("t.csv", "t.parquet"))
    assert all(np.array_equal(a, b) for a, b in zip(csv, columns, strict=True))


def test_a_parquet_file_is_recognised_by_its_magic_bytes(tmp_path: Path) -> None:
    parquet(tmp_path, "trace", at_s=[0, 1], value=[1, 2])
    assert TraceReader(tmp_path).read(TraceLoad(file="trace"))[1].tolist() == [1, 2]


def test_a_file_is_read_once_for_the_same_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(rows((0, 1), (1, 2)))
    reader = TraceReader(tmp_path)
    first = reader.read(TraceLoad(file="t.csv"))
    (tmp_path / "t.csv").unlink()
    assert reader.read(TraceLoad(file="t.csv"))[1].tolist() == first[1].tolist()
    assert reader.read(TraceLoad(file="t.csv", scale=2))[1].tolist() == [2, 4]


def test_a_missing_parquet_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"equipoise\[parquet\]"):
        TraceReader(tmp_path).read(TraceLoad(file="t.parquet"))


def test_a_level_holds_until_the_next_row(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(rows((5, 1), (6, 2), (8, 3), (9, 4)))
    demands = LoadDemands(0, traces=TraceReader(tmp_path))
    demands.add(0, a_vm("v"), Load(cpu_mhz=(TraceLoad(file="t.csv"),)))
    demands.add(1, a_vm("w"), Load(cpu_mhz=(TraceLoad(file="t.csv", repeat=True),)))
    found = [demands.at(at_s * 1000)[0].tolist() for at_s in range(12)]
    once, again = zip(*found, strict=True)
    assert once == (1, 2, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4)
    assert again == (1, 2, 2, 3, 4, 1, 2, 2, 3, 4, 1, 2)
    assert demands.changes(4_000, 5_000).at_ms.tolist() == [5_000]


def test_an_invalid_trace_leaves_the_demands_unchanged(tmp_path: Path) -> None:
    demands = LoadDemands(0, traces=TraceReader(tmp_path))
    with pytest.raises(InvalidInput):
        demands.add(0, a_vm(), Load(cpu_mhz=(TraceLoad(file="none.csv"),)))
    assert demands.rows().tolist() == []
    demands.add(0, a_vm(), Load())


def test_a_trace_needs_a_folder() -> None:
    with pytest.raises(InvalidInput, check=coded("trace-unreadable")):
        TraceReader(None).read(TraceLoad(file="t.csv"))


@pytest.mark.parametrize(
    "name",
    ["none.csv", "none.parquet", ".", "sub/x.csv", "a\0b", "x" * 300, "t.csv/x", "/dev/null"],
)
def test_a_path_without_a_regular_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "t.csv").write_text("")
    with pytest.raises(InvalidInput, check=coded("trace-unreadable")):
        TraceReader(tmp_path).read(TraceLoad(file=name))


def test_a_name_with_control_characters_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        TraceReader(tmp_path).read(TraceLoad(file="\x1b[2J.csv"))
    assert str(caught.value).isprintable()


def test_a_file_without_read_permission_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(rows((0, 1)))
    path.chmod(0)
    try:
        path.read_bytes()
    except PermissionError:
        with pytest.raises(InvalidInput, check=coded("trace-unreadable")):
            TraceReader(tmp_path).read(TraceLoad(file="t.csv"))
    else:
        pytest.skip("this user may read everything")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty-trace"),
        (b"\n \n", "empty-trace"),
        (b"at_s,value\n", "empty-trace"),
        (b"\xff\xfe\x00\x80junk", "trace-unreadable"),
        (b"at_s,value\n\xe4,1\n", "trace-unreadable"),
        (b"\x89PNG\r\n\x1a\n", "trace-unreadable"),
        (b"\x00\x01\x02", "unknown-column"),
        (b'at_s,value\n0,"' + b"9" * 200_000, "trace-unreadable"),
    ],
)
def test_a_file_that_is_not_a_trace_is_refused(tmp_path: Path, content: bytes, code: str) -> None:
    assert refusal(tmp_path, content)[0].code == code


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1junkPAR1", b"at_s,value\n0,1\n"])
def test_a_file_with_a_parquet_name_and_other_content_is_refused(
    tmp_path: Path, content: bytes
) -> None:
    pytest.importorskip("pyarrow")
    (problem,) = refusal(tmp_path, content, file="t.parquet")
    assert problem.code == "trace-unreadable"


def test_missing_columns_are_reported_with_a_suggestion(tmp_path: Path) -> None:
    text = "\nAt_s,usage,x\n0,1,2\n"
    found = refusal(tmp_path, text, value="usgae")
    assert codes(found) == [(2, "unknown-column")] * 2
    assert [suggested(problem.cure) for problem in found] == ["At_s", "usage"]
    (problem,) = refusal(tmp_path, text, time="At_s", value="what is it")
    assert (problem.line, problem.code) == (2, "unknown-column")
    assert all(column in problem.cure for column in ("At_s", "usage", "x"))


def test_a_duplicate_column_is_refused(tmp_path: Path) -> None:
    (problem,) = refusal(tmp_path, "at_s,value,value\n0,1,2\n")
    assert (problem.code, figures(problem.what)) == ("unknown-column", [2])


def test_every_cell_that_is_not_a_number_is_named_with_its_line(tmp_path: Path) -> None:
    problems = refusal(tmp_path, "at_s,value\n0,one\n\n1,\nx,2\n3\n4,nan\n5,-inf\n6,1\n")
    assert {problem.code for problem in problems} == {"not-a-number"}
    assert [(problem.line, problem.key) for problem in problems] == [
        (2, "value"), (4, "value"), (5, "at_s"), (6, "value"), (7, "value"), (8, "value")
    ]  # fmt: skip
    shown = ['"one"', "", '"x"', "", "NaN", "-infinity"]
    assert all(problem.what.startswith(word) for problem, word in zip(problems, shown, strict=True))


def test_an_invalid_time_is_a_problem_of_its_row_only(tmp_path: Path) -> None:
    for word in ("inf", "nan", "soon"):
        for text in (rows((0, 1), (word, 1), (9, 1)), rows((word, 1), (8, 1), (9, 1))):
            assert len(refusal(tmp_path, text)) == 1


def test_a_negative_level_is_refused_after_scaling(tmp_path: Path) -> None:
    assert codes(refusal(tmp_path, rows((0, 1), (1, -2.5)))) == [(3, "negative-demand")]
    (problem,) = refusal(tmp_path, rows((0, 0), (1, 2)), scale=-3)
    assert (problem.code, figures(problem.what)[:2]) == ("negative-demand", [2, 3])
    assert read(tmp_path, rows((0, -2), (1, 0)), scale=-3)[1] == [6, 0]


def test_a_level_above_the_limit_is_refused(tmp_path: Path) -> None:
    for text, scale in ((rows((0, 1e13)), 1.0), (rows((0, 1e308)), 1e12)):
        assert codes(refusal(tmp_path, text, scale=scale)) == [(2, "demand-too-large")]


def test_times_must_increase(tmp_path: Path) -> None:
    problems = refusal(tmp_path, rows((0, 1), (5, 1), (4, 1), (4, 1), (4.0001, 1)))
    assert codes(problems) == [(line, "time-not-ascending") for line in (4, 5, 6)]


def test_a_gap_longer_than_allowed_is_refused(tmp_path: Path) -> None:
    text = rows((0, 1), (60, 1), (121, 1))
    (problem,) = refusal(tmp_path, text, gap_s_max=60)
    assert (problem.line, problem.code) == (4, "trace-gap")
    assert read(tmp_path, text, gap_s_max=61)[0] == [0, 60_000, 121_000]
    for far in (1e300, -1e300, 1e18):
        assert len(refusal(tmp_path, rows((0, 1), (far, 1)), gap_s_max=10**9)) == 1


def test_of_many_problems_twenty_are_shown_in_the_order_of_the_lines(tmp_path: Path) -> None:
    found = refusal(tmp_path, rows(*((time, "x" if time % 2 else -1) for time in range(50))))
    assert [problem.line for problem in found[:-1]] == list(range(2, 22))
    assert str(found[-1]) == "and 30 more"
    assert len(refusal(tmp_path, rows(*((time, -1) for time in range(20))))) == 20


def test_problems_of_a_parquet_file_have_the_row(tmp_path: Path) -> None:
    parquet(tmp_path, at_s=[0, 1, 1], value=[1.0, None, -3.0])
    with pytest.raises(InvalidInput) as caught:
        TraceReader(tmp_path).read(TraceLoad(file="t.parquet"))
    assert [(problem.key, problem.code) for problem in caught.value.problems] == [
        ("row 2: value", "not-a-number"),
        ("row 3: value", "negative-demand"),
        ("row 3: at_s", "time-not-ascending"),
    ]


def test_a_parquet_column_without_numbers_is_refused(tmp_path: Path) -> None:
    parquet(tmp_path, at_s=["0", "1"], value=[1, 2])
    with pytest.raises(InvalidInput, check=coded("not-a-number")):
        TraceReader(tmp_path).read(TraceLoad(file="t.parquet"))
    with pytest.raises(InvalidInput, check=coded("unknown-column")):
        TraceReader(tmp_path).read(TraceLoad(file="t.parquet", value="valeu"))
    parquet(tmp_path, at_s=[], value=[])
    with pytest.raises(InvalidInput):
        TraceReader(tmp_path).read(TraceLoad(file="t.parquet"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=60)
    | st.text("at_s,value;\t\"'\n\r 0123.-e\0", max_size=60).map(str.encode)
    | st.binary(max_size=40).map(lambda junk: b"at_s,value\n0,1\n" + junk),
    st.sampled_from(("t.csv", "t.parquet")),
)
def test_the_reader_accepts_or_refuses_any_file(tmp_path: Path, content: bytes, name: str) -> None:
    times, complaint = [0], ""
    try:
        times, levels = read(tmp_path, content, file=name)
        assert len(times) == len(levels)
    except InvalidInput as error:
        complaint = str(error)
    assert times[0] == 0
    assert complaint.replace("\n", "").isprintable()
