"""Runs parallel tasks in SimGrid and answers in JSON lines. The interpreter with SimGrid runs this.

``run`` simulates a whole case in a child process, because a process can hold one platform:

    {"do": "run", "platform": "file.xml", "tasks": [{"start": 0.5, "hosts": ["a"], ...}]}
        -> {"ends": [1.5]}

``load`` and then ``advance`` go step by step. ``advance`` starts tasks, stops others and sets power
states, and then lets time pass up to the next end of a task, or to ``until`` (null: no limit):

    {"do": "load", "platform": "file.xml"} -> {"now": 0.0}
    {"do": "advance", "until": 3.0, "stop": [7], "states": [["a", 1]],
     "start": [{"id": 1, "hosts": ["a"], "flops": [1e9], "bytes": []}]}
        -> {"now": 2.0, "ended": [1]}

A task has one executor per host: ``flops[i]`` operations, and ``bytes[i * n + j]`` from i to j.
This script uses only the standard library and SimGrid. No module of Equipoise imports it.
"""

import json
import os
import signal
import sys

from simgrid import Actor, Engine, Host, Semaphore, this_actor

OPTIONS = ["worker", "--cfg=host/model:ptask_L07", "--log=root.thresh:critical"]

SECONDS_MAX = 20
"""Real time of one case: SimGrid needs minutes where a slow task uses a wide fat pipe."""


def answer(value, file=None):
    """Write one line."""
    out = file or sys.stdout
    out.write(json.dumps(value) + "\n")
    out.flush()


def build(task):
    """Return the parallel task, not yet started."""
    hosts = [Host.by_name(name) for name in task["hosts"]]
    return this_actor.exec_init(hosts, task["flops"], task["bytes"])


def load(path):
    """Return the engine with a platform."""
    engine = Engine(OPTIONS)
    engine.load_platform(path)
    return engine


def run_case(question):
    """Return the end of each task; the tasks start at their own times."""
    engine = load(question["platform"])
    tasks = question["tasks"]
    ends = [None] * len(tasks)

    def run(number, task):
        this_actor.sleep_until(task["start"])
        build(task).start().wait()
        ends[number] = Engine.clock

    first = engine.all_hosts[0]
    for number, task in enumerate(tasks):
        Actor.create(f"task{number}", first, run, number, task)
    engine.run()
    return {"ends": ends}


def run_in_child(question):
    """Answer from a child process; null if SimGrid crashes or needs too long."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        signal.alarm(SECONDS_MAX)
        with os.fdopen(writer, "w") as file:
            answer(run_case(question), file)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    os.waitpid(child, 0)
    answer(json.loads(text) if text else {"ends": None})


class Stepper:
    """The actor that follows the commands."""

    def __init__(self):
        self.running = {}
        self.ended = []
        self.news = Semaphore(0)

    def follow(self):
        """Answer commands until the input ends."""
        answer({"now": Engine.clock})
        for line in sys.stdin:
            command = json.loads(line)
            for number in command["stop"]:
                self.running.pop(number).kill()
            for name, state in command["states"]:
                Host.by_name(name).pstate = state
            for task in command["start"]:
                self.start(task)
            self.advance(command["until"])
            answer({"now": Engine.clock, "ended": self.ended})
            self.ended = []

    def start(self, task):
        """Start a task in an actor of its own, which reports the end."""
        ready = Semaphore(0)

        def run():
            exec_ = build(task).start()
            self.running[task["id"]] = Actor.self()
            ready.release()
            exec_.wait()
            if self.running.pop(task["id"], None):
                self.ended.append(task["id"])
                self.news.release()

        Actor.create(f"task{task['id']}", this_actor.get_host(), run)
        ready.acquire()

    def advance(self, until):
        """Wait for the end of a task, or up to a time."""
        if until is None:
            if self.running:
                self.news.acquire()
        elif until > Engine.clock:
            self.news.acquire_timeout(until - Engine.clock)
        # All tasks that end at this instant have reported by now.
        this_actor.yield_()
        while not self.news.would_block:
            self.news.acquire()


def main():
    """Answer questions until the input ends."""
    for line in sys.stdin:
        question = json.loads(line)
        if question["do"] == "run":
            run_in_child(question)
        else:
            engine = load(question["platform"])
            stepper = Stepper()
            Actor.create("stepper", engine.all_hosts[0], stepper.follow)
            engine.run()
            return


if __name__ == "__main__":
    main()
