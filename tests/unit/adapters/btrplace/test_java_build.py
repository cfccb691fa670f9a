"""Building BtrPlace, with a Maven that only pretends to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from builders import coded
from equipoise.adapters.btrplace import java_build
from equipoise.adapters.btrplace.java_build import safeplace_tests_per_s
from equipoise.adapters.targets.__main__ import main
from equipoise.adapters.targets.environment import MissingTarget
from equipoise.errors import WorldError

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
: > "$build/lib/btrplace-driver-4.jar"
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
    monkeypatch.delenv(java_build.SETTINGS_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    machine.has("java")
    return machine


def put_jars(folder: Path, version: str) -> None:
    folder.mkdir(parents=True)
    for module in ("scheduler-api", "scheduler-choco", "scheduler-json"):
        (folder / f"{module}-{version}.jar").touch()
    (folder / java_build.DRIVER_JAR).touch()


def test_it_is_built_once_in_the_pinned_version(machine: Machine) -> None:
    machine.has_maven()
    assert java_build.find_build() is None
    built = java_build.make_build()
    assert built.version == java_build.PINNED.version
    assert java_build.find_build() == java_build.require_build() == java_build.make_build() == built
    (call,) = machine.calls
    assert f"-Dmaven.repo.local={java_build.PINNED.folder / 'm2'}" in call
    assert " -s " not in call
    assert not (java_build.PINNED.folder / "build").exists()


def test_the_older_version_is_built_if_the_registry_lacks_the_pinned_one(machine: Machine) -> None:
    machine.has_maven(NEWER_IS_LACKING)
    assert java_build.make_build().version == java_build.FALLBACK.version
    assert java_build.require_build().version == java_build.FALLBACK.version
    parent = "org/btrplace/scheduler/1.10.2/scheduler-1.10.2.pom"
    assert (java_build.PINNED.folder / "m2" / parent).exists()
    machine.has_maven()  # which has it by now
    assert java_build.make_build().version == java_build.PINNED.version


def test_a_failure_that_was_kept_is_the_same_lack(machine: Machine) -> None:
    kept = "org.btrplace:scheduler-json:jar:1.12.11 was not found in somewhere before"
    machine.has_maven(NEWER_IS_LACKING.replace(LACKS, kept))
    assert java_build.make_build().version == java_build.FALLBACK.version


def test_another_failure_is_reported_without_addresses_or_older_versions(
    machine: Machine,
) -> None:
    reason = "Could not transfer artifact from https://me:secret@index.example/x : no route"
    machine.has_maven(f"echo '[ERROR] {reason} -> [Help 1]'; echo '[ERROR] '; exit 1")
    with pytest.raises(MissingTarget) as caught:
        java_build.make_build()
    said = str(caught.value)
    assert caught.value.code == "scheduler-missing"
    for part in ("1.12.11", "Could not transfer artifact", "no route", java_build.PINNED.command):
        assert part in said
    assert "secret" not in said
    assert len(machine.calls) == 1
    assert java_build.find_build() is None


def test_a_build_without_a_stamp_is_found(machine: Machine) -> None:
    put_jars(java_build.PINNED.folder / "lib", java_build.PINNED.version)
    assert java_build.make_build() == java_build.require_build()
    assert java_build.require_build().version == java_build.PINNED.version
    assert machine.calls == []


def test_a_build_with_an_older_driver_is_incomplete(machine: Machine) -> None:
    put_jars(java_build.PINNED.folder / "lib", java_build.PINNED.version)
    ours = java_build.PINNED.folder / "lib" / java_build.DRIVER_JAR
    ours.rename(ours.with_name("btrplace-driver-1.jar"))
    assert java_build.find_build() is None


def test_a_build_without_a_jar_or_with_an_old_stamp_is_rebuilt(machine: Machine) -> None:
    machine.has_maven()
    lib = java_build.make_build().lib
    (lib / "scheduler-json-1.12.11.jar").unlink()
    assert java_build.find_build() is None
    java_build.make_build()
    java_build.PINNED.stamp.write_text("the source of last year")
    (lib / "btrplace-driver-0.jar").touch()
    assert java_build.find_build() is None
    assert java_build.make_build().lib == lib
    assert not (lib / "btrplace-driver-0.jar").exists()


def test_settings_of_maven_can_be_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.has_maven()
    monkeypatch.setenv(java_build.SETTINGS_VARIABLE, "mine.xml")
    java_build.make_build()
    assert " -s mine.xml " in machine.calls[0]


def test_missing_tools_are_reported(machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(MissingTarget, match="'mvn'", check=coded("scheduler-missing")):
        java_build.make_build()
    cure = re.escape(java_build.PINNED.command)
    with pytest.raises(MissingTarget, match=cure, check=coded("scheduler-missing")) as caught:
        java_build.require_build()
    assert str(java_build.PINNED.folder) in str(caught.value)
    (tmp_path / "bin" / "java").unlink()
    put_jars(java_build.PINNED.folder / "lib", java_build.PINNED.version)
    assert java_build.find_build() is None
    for ask in (java_build.make_build, java_build.require_build):
        with pytest.raises(MissingTarget, match="'java'", check=coded("scheduler-missing")):
            ask()


def test_the_command_makes_it(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.has_maven()
    assert main(["btrplace"]) == 0
    assert capsys.readouterr().out == f"{java_build.PINNED.folder / 'lib'}\n"


def test_the_pom_pins_the_same_versions() -> None:
    text = (Path(java_build.__file__).parent / "driver" / "pom.xml").read_text()
    assert f"<btrplace.version>{java_build.PINNED.version}</btrplace.version>" in text
    name, version = java_build.DRIVER_JAR.removesuffix(".jar").rsplit("-", 1)
    assert f"<artifactId>{name}</artifactId>" in text
    assert f"<version>{version}</version>" in text


class TestSafePlace:
    def test_it_is_built_beside_btrplace_and_says_how_fast_it_is(self, machine: Machine) -> None:
        machine.has_maven()
        machine.has("java", '#!/bin/sh\necho "{\\"tests\\": 90, \\"seconds\\": 1.5}"\n')
        assert safeplace_tests_per_s(100) == safeplace_tests_per_s(100) == 60.0
        (call,) = machine.calls
        assert call.endswith(" package -Psafeplace")
        assert f"-Dmaven.repo.local={java_build.PINNED.folder / 'm2'}" in call

    def test_safeplace_is_missing_without_its_installation(self, machine: Machine) -> None:
        machine.has_maven("echo '[ERROR] Could not find artifact org.btrplace:safeplace'; exit 1")
        check = coded("scheduler-missing")
        with pytest.raises(MissingTarget, match=r"org\.btrplace:safeplace", check=check) as caught:
            safeplace_tests_per_s(100)
        assert str(java_build.PINNED.folder / "m2") in str(caught.value)

    @pytest.mark.parametrize(
        ("says", "code", "shown"),
        [
            ("echo alas >&2; exit 1", "worker-died", "alas"),
            ("echo hm", "worker-answer-invalid", "hm"),
            ("echo '{}'", "worker-answer-invalid", "{}"),
            ('echo \'{"tests": 1, "seconds": 0}\'', "worker-answer-invalid", "seconds"),
        ],
    )
    def test_invalid_results_of_safeplace_are_errors(
        self, machine: Machine, says: str, code: str, shown: str
    ) -> None:
        machine.has_maven()
        machine.has("java", f"#!/bin/sh\n{says}\n")
        with pytest.raises(WorldError, match=re.escape(shown), check=coded(code)):
            safeplace_tests_per_s(100)
