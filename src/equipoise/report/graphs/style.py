"""How boxes and ties look, in the light and in the dark."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
svg {
  --paper: #fff; --ink: #1c2128; --soft: #59636e; --line: #8b949e;
  --add: #dcf3e6; --add-ink: #0b6e4f; --remove: #fbe3e1; --remove-ink: #b3261e;
  --upgrade: #e1eefb; --upgrade-ink: #0a58a8; --same: #f3f5f7; --same-ink: #8b949e;
  --link: #6e7781; --made: #7a5a00; --runs: #007a5a; --keeps: #9a4f96; --peer: #0067b1;
  --clash: #d4351c;
  font: 12.5px system-ui, -apple-system, "Segoe UI", "Liberation Sans", Roboto, sans-serif;
}
@media (prefers-color-scheme: dark) {
  svg {
    --paper: #14181d; --ink: #e4e8ec; --soft: #a3adb8; --line: #6e7781;
    --add: #12352a; --add-ink: #58c79a; --remove: #3a1f1f; --remove-ink: #ff8a80;
    --upgrade: #17304a; --upgrade-ink: #79b8ff; --same: #1d232a; --same-ink: #6e7781;
    --link: #98a2ad; --made: #dba93a; --runs: #3fc79a; --keeps: #cf94cc; --peer: #58a6f0;
    --clash: #ff7a5c;
  }
}
.paper { fill: var(--paper); }
text { fill: var(--ink); }
.head { font-size: 17px; font-weight: 600; }
.title { font-weight: 600; text-anchor: middle; }
.row { font-size: 11px; }
.row.no_change { fill: var(--soft); }
.row.troubled { fill: var(--remove-ink); text-decoration: line-through; }
.note { font-size: 11px; text-anchor: middle; fill: var(--soft); }
.key { font-size: 12px; fill: var(--soft); }
.body { stroke-width: 1.2; }
.behind { fill: var(--same); stroke: var(--line); }
.add .body { fill: var(--add); stroke: var(--add-ink); }
.remove .body { fill: var(--remove); stroke: var(--remove-ink); }
.upgrade .body { fill: var(--upgrade); stroke: var(--upgrade-ink); }
.no_change .body { fill: var(--same); stroke: var(--same-ink); }
.vms .body { rx: 11px; }
.chosen .body { stroke-width: 3.4; }
.off .body { stroke-dasharray: 4 3; stroke-width: 2; }
.troubled .body { stroke: var(--clash); stroke-width: 3; stroke-dasharray: 9 3; }
.tie { fill: none; stroke: var(--link); stroke-width: 1.1; opacity: .8; }
.tie .tip { stroke: none; fill: var(--link); }
.tie.aggregation, .tie.composition, .tie.container { stroke: var(--made); }
.tie.aggregation .tip, .tie.composition .tip, .tie.container .tip { fill: var(--made); }
.tie.migration { stroke: var(--runs); }
.tie.migration .tip { fill: var(--runs); }
.tie.storage, .tie.controller { stroke: var(--ink); }
.tie.storage .tip, .tie.controller .tip { fill: var(--ink); }
.tie.support { stroke: var(--keeps); }
.tie.support .tip { fill: var(--keeps); }
.tie.peer { stroke: var(--peer); stroke-width: 1.8; }
.tie.peer .tip { fill: var(--peer); }
.tie.future { stroke-dasharray: 5 4; }
.tie.current { stroke-dasharray: 1.5 3; }
.tie.clash { stroke: var(--clash); stroke-width: 2; opacity: 1; }
.tie.clash .tip { fill: var(--clash); }
.tie:hover { stroke-width: 3; opacity: 1; }
"""
