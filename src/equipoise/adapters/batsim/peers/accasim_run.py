"""Runs AccaSim on an SWF file; the interpreter of its environment runs this script.

Arguments: the record, the description of the system, the policy, and the folder for its files. The
last line of the output is a JSON object: the seconds on the wall and of the processor, and the
start time of every job.
"""

import collections
import collections.abc
import json
import logging
import os
import sys
import time
from datetime import datetime
from pathlib import Path

# AccaSim 1.1.3 imports two names that Python has removed since.
collections.Mapping = collections.abc.Mapping
time.clock = time.perf_counter

from accasim.base.allocator_class import FirstFit  # noqa: E402
from accasim.base.scheduler_class import (  # noqa: E402
    EASYBackfilling,
    FirstInFirstOut,
    ShortestJobFirst,
)
from accasim.base.simulator_class import Simulator  # noqa: E402

POLICIES = {"fcfs": FirstInFirstOut, "sjf": ShortestJobFirst, "easy": EASYBackfilling}
BEGIN = datetime(1970, 1, 1)  # noqa: DTZ001  (AccaSim writes dates without a zone)


def _cpu_s() -> float:
    """Return the CPU time with that of the processes in which AccaSim writes its files."""
    return sum(os.times()[:4])


def main() -> None:
    """Run one policy and print what came out."""
    record, system, policy, folder = sys.argv[1:]
    simulator = Simulator(
        record,
        system,
        POLICIES[policy](FirstFit()),
        RESULTS_FOLDER_PATH=folder,
        RESULTS_FOLDER_NAME=folder,
        statistics_output=False,
        show_statistics=False,
    )
    logging.disable(logging.CRITICAL)
    begin_s, cpu_s = time.perf_counter(), _cpu_s()
    files = simulator.start_simulation()
    seconds, cpu_s = time.perf_counter() - begin_s, _cpu_s() - cpu_s
    starts = {}
    for line in Path(next(iter(files.values()))).read_text().splitlines():
        name = line.partition(";")[0]
        date = line.rpartition("__")[2].partition(";")[0]
        began = datetime.strptime(date, "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007
        starts[name] = (began - BEGIN).total_seconds()
    sys.stdout.write(json.dumps({"seconds": seconds, "cpu_s": cpu_s, "starts": starts}) + "\n")


if __name__ == "__main__":
    main()
