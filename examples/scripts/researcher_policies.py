"""For researchers: four policies on one workload of batch jobs, with reports and a plot."""

import sys
from pathlib import Path

import equipoise as eq

JOBS = Path(__file__).parents[1] / "jobs"
POLICIES = ("fcfs", "sjf", "easy", "conservative")


def main(folder: Path) -> None:
    """Run each policy with a report of its own, print the means, and draw the mean waits."""
    waits = {}
    print(f"{'policy':14}{'makespan':>10}{'mean wait':>11}{'slowdown':>10}")
    for policy in POLICIES:
        run = eq.simulate_jobs(
            JOBS / "platform.xml", JOBS / "workload.json", policy=policy, out=folder / policy
        )
        figures = run.figures
        waits[policy] = figures["mean_waiting_time"]
        slowdown = figures["mean_slowdown"]
        print(f"{policy:14}{figures['makespan']:10.0f}{waits[policy]:11.1f}{slowdown:10.2f}")
    (folder / "waits.svg").write_text(bars(waits))
    print(f"reports and plot: {folder}")


def bars(waits: dict[str, float]) -> str:
    """Return a bar chart as SVG."""
    longest = max(waits.values())
    rows = [
        f'<text x="5" y="{40 * row + 34}">{name}</text>'
        f'<rect x="110" y="{40 * row + 20}" width="{300 * wait / longest:.1f}" height="20" '
        f'fill="#4878a8"/><text x="420" y="{40 * row + 34}">{wait:.0f} s</text>'
        for row, (name, wait) in enumerate(waits.items())
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="500" height="{40 * len(rows) + 20}" '
        f'font-family="sans-serif" font-size="13">{"".join(rows)}</svg>\n'
    )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "policies"))
