"""Looks at playbooks before anything is done with them. Never runs them, never looks into steps.

A playbook says ``hosts: "{{ equipoise_hosts }}"``. One that says ``all`` would act on the hosts of
every other action of the same batch, so it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NoReturn

import yaml

from equipoise.errors import InvalidInput, Problem
from equipoise.hosts.ansible.layout import HOSTS

_OURS: Final = re.compile(r"\s*\{\{\s*" + HOSTS + r"\b[^{}]*\}\}\s*")
_CURE: Final = f'hosts: "{{{{ {HOSTS} }}}}"'
_IMPORTS: Final = ("import_playbook", "ansible.builtin.import_playbook")


def check_playbooks(paths: Iterable[Path]) -> None:
    """Raise ``InvalidInput`` for the first file that is not a playbook for the hosts of a batch."""
    todo, seen = list(dict.fromkeys(paths)), set[Path]()
    while todo:
        path = todo.pop(0)
        if path not in seen:
            seen.add(path)
            todo += _imported(path)


def _imported(path: Path) -> list[Path]:
    """Check one file, and say which others it is made of."""
    root = _read(path)
    if not isinstance(root, yaml.SequenceNode) or not root.value:
        _refuse(path, root, "a playbook is a list of plays", f"start it with - {_CURE}")
    found: list[Path] = []
    for play in root.value:
        if not isinstance(play, yaml.MappingNode):
            _refuse(path, play, "this is not a play", f"a play has {_CURE}")
        keys = {key.value: value for key, value in play.value}
        part = next((keys[name] for name in _IMPORTS if name in keys), None)
        if part is not None:
            found.append(path.parent / str(part.value))
        elif "hosts" not in keys:
            _refuse(path, play, "a play does not say for which hosts it is", _CURE)
        elif not _is_for_batch(keys["hosts"]):
            _refuse(path, keys["hosts"], "a play is not for the hosts of the batch", _CURE)
    return found


def _is_for_batch(hosts: yaml.Node) -> bool:
    text = hosts.value
    return isinstance(text, str) and (text == "localhost" or bool(_OURS.fullmatch(text)))


def _read(path: Path) -> yaml.Node:
    try:
        text = path.read_text(encoding="utf-8")
        root: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except OSError as error:
        what = f"the playbook cannot be read: {str(error.strerror).lower()}"
        cure = "is the name right? it is seen from the folder of the file that names it"
        raise InvalidInput(str(path), [Problem(key="", what=what, cure=cure)]) from None
    except UnicodeDecodeError:
        what = "the playbook is not UTF-8 text"
        raise InvalidInput(str(path), [Problem(key="", what=what)]) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = None if mark is None else mark.line + 1
        what = f"this is not YAML: {error.problem}"
        raise InvalidInput(str(path), [Problem(key="", what=what, line=line)]) from None
    if root is None:
        what = "the playbook is empty"
        raise InvalidInput(str(path), [Problem(key="", what=what, cure=f"a play has {_CURE}")])
    return root


def _refuse(path: Path, node: yaml.Node, what: str, cure: str) -> NoReturn:
    line = node.start_mark.line + 1
    raise InvalidInput(str(path), [Problem(key="", what=what, cure=cure, line=line)])
