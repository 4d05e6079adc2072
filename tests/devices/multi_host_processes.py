"""Runs of examples/multi_host.py in processes that are forked from this one, which imports the example once.

It reads rounds as JSON: lists of processes that run at the same time, each as its arguments and the step after which it
kills itself, or null. It writes the exit code, the standard output and the standard error of each.
"""

import json
import multiprocessing
import os
import signal
import socket
import sys

import multi_host

FORK = multiprocessing.get_context("fork")
# A process that hangs is killed at last; nothing else depends on how long anything takes.
HUNG = 600


def run(arguments, killed_after, streams):
    """Runs the example, and kills its process after a step, when the checkpoint before it is complete."""
    for number, (_, end) in enumerate(streams, 1):
        os.dup2(end, number)
        os.close(end)
    manager = multi_host.ocp.CheckpointManager
    reached_preemption = manager.reached_preemption

    def after(self, step):
        if step == killed_after:
            self.wait_until_finished()
            os.kill(os.getpid(), signal.SIGKILL)
        return reached_preemption(self, step)

    manager.reached_preemption = after
    sys.exit(multi_host.main(arguments))


def start(arguments, killed_after):
    """A process, and what it writes."""
    streams = [os.pipe() for _ in range(2)]
    process = FORK.Process(target=run, args=(arguments, killed_after, streams))
    process.start()
    for _, end in streams:
        os.close(end)
    return process, [open(end) for end, _ in streams]


def ended(started):
    for process, _ in started:
        process.join(HUNG)
    for process, _ in started:
        process.kill()
        process.join()
    return [(process.exitcode, *(stream.read() for stream in streams)) for process, streams in started]


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def main():
    results = []
    for processes in json.load(sys.stdin):
        coordinator = f"127.0.0.1:{free_port()}"
        started = [
            start([argument.format(coordinator=coordinator) for argument in arguments], killed_after)
            for arguments, killed_after in processes
        ]
        results.append(ended(started))
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
