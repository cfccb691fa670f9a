"""For researchers: a decider of your own beside the built-in one, over seeds, with a plot."""

import sys
from pathlib import Path

import equipoise as eq

SEEDS = range(3)
SCENARIO = "drs-table1"


class Rarely:
    """Moves one VM from the host with the most VMs to the one with the fewest, once in a run."""

    def __init__(self) -> None:
        self._done = False

    def propose(self, snapshot: eq.Snapshot) -> eq.Proposal:
        """Return one migration, or an empty proposal."""
        nothing = eq.Proposal(decider="rarely", purpose=eq.Purpose.BALANCE)
        if self._done:
            return nothing
        by_count = sorted(snapshot.residents, key=lambda host: len(snapshot.residents[host]))
        source, target = by_count[-1], by_count[0]
        vm = snapshot.residents[source][0]
        self._done = True
        action = eq.Migrate(vm=vm, source=source, target=target)
        intent = eq.Intent(id=f"move-{vm}", action=action, duration_ms=10_000)
        return nothing.but(intents=(intent,), reason="the first VM of the fullest host")


def main(out: Path) -> None:
    """Run three sweeps, print means with confidence intervals, and draw them."""
    sweeps = {
        "no decider": eq.sweep(SCENARIO, seeds=SEEDS, without=["balance"]),
        "one move": eq.sweep(SCENARIO, seeds=SEEDS, without=["balance"], deciders=[Rarely]),
        "balance": eq.sweep(SCENARIO, seeds=SEEDS),
    }
    estimates = {name: sweep.estimate("satisfied_cpu_pct") for name, sweep in sweeps.items()}
    for name, estimate in estimates.items():
        print(f"{name:12} CPU demand satisfied: {estimate} %")
    out.write_text(bars(estimates))
    print(f"plot: {out}")


def bars(estimates: dict[str, object]) -> str:
    """Return a bar chart with error bars as SVG."""
    rows = []
    for row, (name, estimate) in enumerate(estimates.items()):
        y, width = 20 + 40 * row, 4 * estimate.mean
        low, high = 4 * max(0.0, estimate.low), 4 * min(110.0, estimate.high)
        rows.append(
            f'<text x="5" y="{y + 14}">{name}</text>'
            f'<rect x="100" y="{y}" width="{width:.1f}" height="20" fill="#4878a8"/>'
            f'<path d="M{100 + low:.1f} {y + 10}H{100 + high:.1f}" stroke="#202020"/>'
        )
    height = 40 * len(rows) + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="560" height="{height}" '
        f'font-family="sans-serif" font-size="13">{"".join(rows)}</svg>\n'
    )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "sweep.svg"))
