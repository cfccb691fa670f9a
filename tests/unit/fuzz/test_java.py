"""Building BtrPlace, with a Maven that only pretends to."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.errors import WorldError
from equipoise.fuzz.targets import MissingTarget, java
from equipoise.fuzz.targets.__main__ import main
from equipoise.fuzz.targets.safeplace_rate import safeplace_rate

MAVEN = """#!/bin/sh
echo "$@" >> "{log}"
for word in "$@"; do
  case "$word" in
    -Dbtrplace.version=*) version="${{word#*=}}" ;;
    -Dequipoise.build=*) build="${{word#*=}}" ;;
  esac
done
{says}
/bin/mkdir -p "$build/lib" "$build/classes"
for module in scheduler-api scheduler-choco scheduler-json; do
  : > "$build/lib/$module-$version.jar"
done
: > "$build/lib/btrplace-solve-3.jar"
"""
LACKS = "Could not find artifact org.btrplace:scheduler-choco:jar:$version in central"
NEWER_IS_LACKING = f"""
if [ "$version" = 1.12.11 ]; then echo "[ERROR] {LACKS} -> [Help 1]"; exit 1; fi
"""


class Machine:
    """A machine with tools of its own."""

    def __init__(self, folder: Path) -> None:
        self._bin = folder / "bin"
        self._log = folder / "log"
        self._bin.mkdir()

    def has(self, name: str, text: str = "#!/bin/sh\n") -> None:
        path = self._bin / name
        path.write_text(text)
        path.chmod(0o755)

    def has_maven(self, says: str = "") -> None:
        self.has("mvn", MAVEN.format(log=self._log, says=says))

    @property
    def calls(self) -> list[str]:
        return self._log.read_text().splitlines() if self._log.exists() else []


@pytest.fixture(name="machine")
def fixture_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path)
    monkeypatch.setenv("EQUIPOISE_TARGETS", str(tmp_path / "targets"))
    monkeypatch.delenv(java.SETTINGS, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    machine.has("java")
    return machine


def put_jars(folder: Path, version: str) -> None:
    folder.mkdir(parents=True)
    for module in ("scheduler-api", "scheduler-choco", "scheduler-json"):
        (folder / f"{module}-{version}.jar").touch()
    (folder / java.OURS).touch()


def test_it_is_built_once_in_the_pinned_version(machine: Machine) -> None:
    machine.has_maven()
    assert java.find() is None
    built = java.make()
    assert built.version == java.PINNED.version
    assert java.find() == java.need() == java.make() == built
    (call,) = machine.calls
    assert f"-Dmaven.repo.local={java.PINNED.folder / 'm2'}" in call
    assert " -s " not in call
    assert not (java.PINNED.folder / "build").exists()


def test_the_older_one_is_taken_if_the_registry_lacks_the_pinned_one(machine: Machine) -> None:
    machine.has_maven(NEWER_IS_LACKING)
    assert java.make().version == java.OLDER.version
    assert java.need().version == java.OLDER.version
    parent = "org/btrplace/scheduler/1.10.2/scheduler-1.10.2.pom"
    assert (java.PINNED.folder / "m2" / parent).exists()
    machine.has_maven()  # which has it by now
    assert java.make().version == java.PINNED.version


def test_a_failure_that_was_kept_is_the_same_lack(machine: Machine) -> None:
    kept = "org.btrplace:scheduler-json:jar:1.12.11 was not found in somewhere before"
    machine.has_maven(NEWER_IS_LACKING.replace(LACKS, kept))
    assert java.make().version == java.OLDER.version


def test_another_failure_is_said_without_any_address_and_nothing_older_is_tried(
    machine: Machine,
) -> None:
    reason = "Could not transfer artifact from https://me:secret@index.example/x : no route"
    machine.has_maven(f"echo '[ERROR] {reason} -> [Help 1]'; echo '[ERROR] '; exit 1")
    with pytest.raises(MissingTarget) as caught:
        java.make()
    said = str(caught.value)
    assert "version 1.12.11 could not be built (Could not transfer artifact from an address" in said
    assert "no route); with a Maven registry in reach" in said
    assert "secret" not in said
    assert len(machine.calls) == 1
    assert java.find() is None


def test_one_that_was_put_there_by_hand_is_found(machine: Machine) -> None:
    put_jars(java.PINNED.folder / "lib", java.PINNED.version)
    assert java.make() == java.need()
    assert java.need().version == java.PINNED.version
    assert machine.calls == []


def test_one_with_an_older_jar_of_ours_is_not_whole(machine: Machine) -> None:
    put_jars(java.PINNED.folder / "lib", java.PINNED.version)
    ours = java.PINNED.folder / "lib" / java.OURS
    ours.rename(ours.with_name("btrplace-solve-1.jar"))
    assert java.find() is None


def test_one_that_lacks_a_jar_or_has_an_old_stamp_is_built_anew(machine: Machine) -> None:
    machine.has_maven()
    lib = java.make().lib
    (lib / "scheduler-json-1.12.11.jar").unlink()
    assert java.find() is None
    java.make()
    java.PINNED.stamp.write_text("the source of last year")
    (lib / "btrplace-solve-0.jar").touch()
    assert java.find() is None
    assert java.make().lib == lib
    assert not (lib / "btrplace-solve-0.jar").exists()


def test_settings_of_maven_can_be_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.has_maven()
    monkeypatch.setenv(java.SETTINGS, "mine.xml")
    java.make()
    assert " -s mine.xml " in machine.calls[0]


def test_what_is_missing_is_said(machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(MissingTarget, match="there is no 'mvn' on the PATH"):
        java.make()
    with pytest.raises(MissingTarget, match=r"no whole build .*\.targets btrplace'"):
        java.need()
    (tmp_path / "bin" / "java").unlink()
    put_jars(java.PINNED.folder / "lib", java.PINNED.version)
    assert java.find() is None
    for ask in (java.make, java.need):
        with pytest.raises(MissingTarget, match="there is no 'java' on the PATH"):
            ask()


def test_the_command_makes_it(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.has_maven()
    assert main(["btrplace"]) == 0
    assert capsys.readouterr().out == f"{java.PINNED.folder / 'lib'}\n"


def test_the_pom_pins_the_same_versions() -> None:
    text = (Path(java.__file__).parent / "btrplace" / "pom.xml").read_text()
    assert f"<btrplace.version>{java.PINNED.version}</btrplace.version>" in text
    name, version = java.OURS.removesuffix(".jar").rsplit("-", 1)
    assert f"<artifactId>{name}</artifactId>" in text
    assert f"<version>{version}</version>" in text


class TestSafePlace:
    def test_it_is_built_beside_btrplace_and_says_how_fast_it_is(self, machine: Machine) -> None:
        machine.has_maven()
        machine.has("java", '#!/bin/sh\necho "{\\"tests\\": 90, \\"seconds\\": 1.5}"\n')
        assert safeplace_rate(100) == safeplace_rate(100) == 60.0
        (call,) = machine.calls
        assert call.endswith(" package -Psafeplace")
        assert f"-Dmaven.repo.local={java.PINNED.folder / 'm2'}" in call

    def test_it_is_missing_where_nobody_has_installed_it(self, machine: Machine) -> None:
        machine.has_maven("echo '[ERROR] Could not find artifact org.btrplace:safeplace'; exit 1")
        with pytest.raises(MissingTarget, match=r"could not be built .*:safeplace\); install it"):
            safeplace_rate(100)

    @pytest.mark.parametrize(
        ("says", "what"),
        [
            ("echo alas >&2; exit 1", "SafePlace broke:\nalas"),
            ("echo hm", "answered nonsense: 'hm"),
            ("echo '{}'", "answered nonsense"),
            ('echo \'{"tests": 1, "seconds": 0}\'', "answered nonsense"),
        ],
    )
    def test_it_is_not_believed_everything(self, machine: Machine, says: str, what: str) -> None:
        machine.has_maven()
        machine.has("java", f"#!/bin/sh\n{says}\n")
        with pytest.raises(WorldError, match=what):
            safeplace_rate(100)
