"""Tables as files."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from equipoise.errors import InvalidInput
from equipoise.model.host import HostState
from equipoise.report.run_folder import read_csv, write_csv, write_parquet
from equipoise.sim.measure.sampling import SampleTable

TABLE = SampleTable({
    "at_s": np.array([0.0, 300.0, 600.0]),
    "host": np.array(["h1", 'a,"b"\nc', ""], dtype=object),
    "state": np.array([HostState.ON, HostState.FAILED, "on"], dtype=object),
    "vms": np.array([1, 2, 3]),
    "cpu_used_mhz": np.array([0.1 + 0.2, 1234.56789, -0.00001]),
    "imbalance": np.array([0.0123456789, np.nan, 1e-7]),
})  # fmt: skip


def test_numbers_are_short_and_what_is_unknown_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write_csv(path, TABLE)
    lines = path.read_bytes().decode().split("\n")
    assert lines[0] == "at_s,host,state,vms,cpu_used_mhz,imbalance"
    assert lines[1] == "0,h1,on,1,0.3,0.012346"
    assert lines[2] == '300,"a,""b""'
    assert lines[3] == 'c",failed,2,1234.568,'
    assert lines[4] == "600,,on,3,0,0"


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write_csv(path, TABLE)
    back = read_csv(path, ("at_s", "host"))
    assert back["host"].tolist() == ["h1", 'a,"b"\nc', ""]
    assert back["vms"].tolist() == [1, 2, 3]
    assert np.isnan(back["imbalance"][1])


def test_an_empty_table_has_names_only(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write_csv(path, SampleTable({"at_s": np.array([]), "pool": np.array([], dtype=object)}))
    assert path.read_text() == "at_s,pool\n"
    assert len(read_csv(path, ("at_s",))) == 0


def test_parquet_keeps_every_digit(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the extra 'parquet' is not installed")
    path = tmp_path / "t.parquet"
    assert write_parquet(path, TABLE)
    back = import_module("pyarrow.parquet").read_table(str(path)).to_pydict()
    assert back["cpu_used_mhz"][0] == 0.1 + 0.2
    assert back["state"] == ["on", "failed", "on"]
    assert back["vms"] == [1, 2, 3]


def test_without_pyarrow_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert not write_parquet(tmp_path / "t.parquet", TABLE)
    assert not (tmp_path / "t.parquet").exists()


@pytest.mark.parametrize(
    ("written", "code", "line", "key", "named"),
    [
        ("", "table-invalid", 1, "", ("at_s", "pool")),
        ("at_s\n1\n", "table-invalid", 1, "", ("pool",)),
        ("at_s,pool\n1\n", "table-invalid", 2, "", ("1", "2")),
        ("at_s,pool\nsoon,a\n", "not-a-number", None, "at_s", ("soon",)),
    ],
)
def test_a_damaged_file_is_refused_with_place_and_cure(
    tmp_path: Path, written: str, code: str, line: int | None, key: str, named: tuple[str, ...]
) -> None:
    path = tmp_path / "pools.csv"
    path.write_text(written)
    with pytest.raises(InvalidInput) as caught:
        read_csv(path, ("at_s", "pool"))
    (problem,) = caught.value.problems
    assert (problem.code, problem.line, problem.key) == (code, line, key)
    assert all(re.search(rf"\b{name}\b", problem.what) for name in named)
    assert "simulate --out" in problem.cure


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_csv(tmp_path / "none.csv", ())
    assert caught.value.code == "file-not-readable"
