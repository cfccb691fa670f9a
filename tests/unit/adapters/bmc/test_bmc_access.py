"""The access file of hosts with a BMC: its keys and its problems."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import coded, figures, suggested
from equipoise.adapters.access_file import FileContext
from equipoise.adapters.bmc.access import (
    BmcAccess,
    BmcHostAccess,
    IpmiAccess,
    RedfishAccess,
    WakeOnLanAccess,
    parse_access,
    power_controls,
)
from equipoise.adapters.bmc.host_power import WaitClock
from equipoise.errors import InputProblem, InvalidInput, MissingExtra
from equipoise.files import to_yaml
from equipoise.files.write import to_plain
from equipoise.model.quantity import HostId

EXAMPLE = Path(__file__).parents[4] / "examples" / "access.yaml"
CLOCK = WaitClock(now=lambda: 0.0, pause=lambda _seconds: None)

WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=12
)
NAMES = st.from_regex(r"[A-Za-z0-9_.:@/+-]{1,12}", fullmatch=True).map(HostId)
PLACES = st.builds("{}:{}".format, st.from_regex(r"[a-z0-9.]{1,9}", fullmatch=True), st.just(22))
PASSWORDS = st.one_of(
    st.fixed_dictionaries({"password_env": st.from_regex(r"[A-Z_]{1,9}", fullmatch=True)}),
    st.fixed_dictionaries({"password_file": WORDS}),
)
REDFISH = st.builds(
    lambda password, **rest: RedfishAccess(**password, **rest),
    PASSWORDS,
    url=st.sampled_from(("https://h1-bmc", "https://10.0.0.1:8443/", "http://[fe80::1]")),
    user=WORDS,
    system=st.none() | WORDS,
    ca_file=st.none() | WORDS,
    check=st.none() | PLACES,
)
IPMI = st.builds(
    lambda password, **rest: IpmiAccess(**password, **rest),
    PASSWORDS,
    address=WORDS,
    user=st.from_regex(r"[a-z]{1,16}", fullmatch=True),
    port=st.integers(1, 65535),
    check=st.none() | PLACES,
)
WOL = st.builds(
    WakeOnLanAccess,
    mac=st.binary(min_size=6, max_size=6).map(lambda mac: mac.hex(":")),
    check=PLACES,
    broadcast=WORDS,
    port=st.integers(1, 65535),
)
HOSTS = st.builds(
    BmcHostAccess, redfish=st.none() | REDFISH, ipmi=st.none() | IPMI, wol=st.none() | WOL
).filter(lambda host: host != BmcHostAccess())
ACCESSES = st.builds(BmcAccess, hosts=st.dictionaries(NAMES, HOSTS, min_size=1, max_size=4))


def problems(text: str) -> list[InputProblem]:
    with pytest.raises(InvalidInput) as caught:
        parse_access(text.encode(), "access.yaml")
    return list(caught.value.problems)


def around(folder: Path, **environ: str) -> FileContext:
    return FileContext(source="access.yaml", folder=folder, environ=environ)


def an_access(**ways: Any) -> BmcAccess:
    return BmcAccess(hosts={HostId("h1"): BmcHostAccess(**ways)})


@given(ACCESSES)
def test_a_written_file_is_read_back(access: BmcAccess) -> None:
    assert parse_access(to_yaml(cast(Any, access)).encode(), "a.yaml") == access
    assert parse_access(json.dumps(to_plain(access)).encode(), "a.json") == access


@given(st.text(max_size=60) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["hosts", "h1", "redfish", "ipmi", "wol", "url", "mac", "check", "user"]),
        inner,
        max_size=4,
    ),
).map(json.dumps))  # fmt: skip
def test_any_file_is_read_or_refused(text: str) -> None:
    with suppress(InvalidInput):
        assert parse_access(text.encode(), "access.yaml").hosts


def test_the_example_is_valid() -> None:
    access = parse_access(EXAMPLE.read_bytes(), str(EXAMPLE))
    assert len(access.hosts) >= 3


def test_all_problems_are_reported_with_their_lines() -> None:
    found = problems(
        "hosts:\n"
        "  h1:\n"
        "    redfish: {url: h1-bmc, user: root, password: secret}\n"
        "  h2:\n"
        "    ipmi: {address: h2, user: root, port: 99999, password_env: X}\n"
        "  h3:\n"
        "    wol: {mac: 52540012345, check: 'h3:22'}\n"
        "  h4:\n"
        "    wol: {mac: '525400123456', check: h4}\n"
    )
    assert [(problem.line, problem.key, problem.code) for problem in found] == [
        (3, "hosts.h1.redfish.password", "unknown-key"),
        (5, "hosts.h2.ipmi.port", "out-of-range"),
        (7, "hosts.h3.wol.mac", "wrong-type"),
        (9, "hosts.h4.wol.check", "invalid-value"),
    ]
    assert [figures(problem.what) for problem in found[1:3]] == [[99999], [52540012345]]
    assert "password_env, password_file" in found[0].cure
    assert "secret" not in "".join(map(str, found))


REDFISH_AT = "redfish: {{url: '{}', user: u, password_env: P}}".format
REDFISH_WITH = "redfish: {{url: 'https://h', user: u{}}}".format
IPMI_WITH = "ipmi: {{address: h, user: {}}}".format
WOL_WITH = "wol: {{{}}}".format


@pytest.mark.parametrize(
    ("way", "key", "code"),
    [
        (REDFISH_AT("ftp://h"), "redfish.url", "invalid-value"),
        (REDFISH_AT("https://[h"), "redfish.url", "invalid-value"),
        (REDFISH_AT("https://h:99999"), "redfish.url", "invalid-value"),
        (REDFISH_AT("https://u:s3cret@h"), "redfish.url", "secret-in-file"),
        (REDFISH_AT("https://h/redfish/v1"), "redfish.url", "invalid-value"),
        (REDFISH_WITH(""), "redfish.password_env", "missing-key"),
        (REDFISH_WITH(", password_env: s3cret!"), "redfish.password_env", "secret-in-file"),
        (
            IPMI_WITH("u, password_env: P, password_file: f"),
            "ipmi.password_file",
            "contradiction",
        ),
        (IPMI_WITH("abcdefghijklmnopq, password_env: P"), "ipmi.user", "out-of-range"),
        (IPMI_WITH("u, password_env: P, check: h"), "ipmi.check", "invalid-value"),
        (WOL_WITH("mac: '52:54', check: 'h:22'"), "wol.mac", "invalid-value"),
        (WOL_WITH("mac: 525400-123456, check: h:22"), "wol.mac", "invalid-value"),
        (WOL_WITH("mac: '52:54:00:12:34:56', check: h"), "wol.check", "invalid-value"),
        (WOL_WITH("mac: '52:54:00:12:34:56'"), "wol.check", "missing-key"),
        ("", "", "wrong-type"),
        ("{}", "", "missing-key"),
    ],
)
def test_each_problem_has_its_key_and_code(way: str, key: str, code: str) -> None:
    indented = f"\n    {way}" if ":" in way else f" {way}"
    (found,) = problems(f"hosts:\n  h1:{indented}\n")
    assert found.key == f"hosts.h1.{key}".rstrip(".")
    assert found.code == code
    assert found.cure
    assert found.line in (2, 3)
    assert "s3cret" not in str(found), "a password in the wrong place is not repeated"


def test_a_file_without_hosts_is_refused() -> None:
    for text, code, key in (
        ("hosts: {}\n", "empty-value", "hosts"),
        ("", "empty-value", ""),
        ("hosts: [h1]\n", "wrong-type", "hosts"),
        ("[]\n", "wrong-type", ""),
    ):
        found = problems(text)[0]
        assert (found.code, found.key, found.line) == (code, key, 1)


def test_an_unknown_host_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    access = an_access(wol=WakeOnLanAccess(mac="525400123456", check="h1:22"))
    with pytest.raises(InvalidInput) as caught:
        power_controls(access, ["h2", "h11"], around(tmp_path), CLOCK)
    first, second = caught.value.problems
    assert (first.code, second.code) == ("unknown-name", "unknown-name")
    assert ('"h2"' in first.what, '"h11"' in second.what) == (True, True)
    assert suggested(second.cure) == "h1"
    assert list(power_controls(access, ["h1", "h1"], around(tmp_path), CLOCK)) == ["h1"]


def test_only_the_passwords_of_named_hosts_are_read(tmp_path: Path) -> None:
    ipmi = IpmiAccess(address="h", user="u", password_env="P1")
    wol = WakeOnLanAccess(mac="525400123456", check="h:22")
    access = BmcAccess(
        hosts={HostId("h1"): BmcHostAccess(ipmi=ipmi), HostId("h2"): BmcHostAccess(wol=wol)}
    )
    assert list(power_controls(access, ["h2"], around(tmp_path), CLOCK)) == ["h2"]
    with pytest.raises(InvalidInput, check=coded("secret-missing", "hosts.h1.ipmi.password_env")):
        power_controls(access, [], around(tmp_path), CLOCK)
    with pytest.raises(InvalidInput, check=coded("secret-missing", "hosts.h1.ipmi.password_env")):
        power_controls(access, [], around(tmp_path, P1=""), CLOCK)
    assert list(power_controls(access, [], around(tmp_path, P1="right"), CLOCK)) == ["h1", "h2"]


def test_a_password_may_be_in_a_file(tmp_path: Path) -> None:
    access = an_access(ipmi=IpmiAccess(address="h", user="u", password_file="secret"))
    file = tmp_path / "secret"

    def refused() -> InvalidInput:
        with pytest.raises(InvalidInput) as caught:
            power_controls(access, [], around(tmp_path), CLOCK)
        assert [problem.key for problem in caught.value.problems] == ["hosts.h1.ipmi.password_file"]
        return caught.value

    assert refused().code == "file-not-readable"
    file.write_text("\n")
    assert refused().code == "secret-missing"
    file.write_bytes(b"\xff")
    assert refused().code == "file-not-readable"
    file.write_text("right\n")
    assert power_controls(access, [], around(tmp_path), CLOCK)
    file.write_text("much too long for this protocol\n")
    too_long = refused()
    assert (too_long.code, "much" in str(too_long)) == ("out-of-range", False)


def test_a_ca_file_must_exist(tmp_path: Path) -> None:
    access = an_access(
        redfish=RedfishAccess(url="https://h", user="u", password_env="P", ca_file="ca.pem")
    )
    with pytest.raises(InvalidInput, check=coded("file-not-readable", "hosts.h1.redfish.ca_file")):
        power_controls(access, [], around(tmp_path, P="x"), CLOCK)
    (tmp_path / "ca.pem").write_text("")
    assert power_controls(access, [], around(tmp_path, P="x"), CLOCK)


@pytest.mark.parametrize(
    ("library", "ways"),
    [
        ("sushy", {"redfish": RedfishAccess(url="https://h", user="u", password_env="P")}),
        ("pyghmi", {"ipmi": IpmiAccess(address="h", user="u", password_env="P")}),
    ],
)
def test_a_missing_library_names_the_extra(
    library: str, ways: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=r"equipoise\[power\]"):
        power_controls(an_access(**ways), [], around(tmp_path, P="x"), CLOCK)
