"""A thread that holds the interpreter is told of, while it does and afterwards; a pause is not."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
QUICK = """
import re, sys, threading, time
from amber.lib.workers import interpreter_watch as watch
watch.TICK_SECONDS, watch.LATE_SECONDS, watch.LEAST_HELD_SECONDS = 0.2, 0.4, 0.2
watch.STACKS_CPU_SECONDS = 0.5
watch.start()
watch.start()
assert sum(each.name == "interpreter-watch" for each in threading.enumerate()) == 1
"""
HOLD = """
def hold():  # `re` does not let go: each further a doubles it
    n, took = 22, 0.0
    while took < 0.6:
        began = time.thread_time()
        re.match("(a+)+b", "a" * n)
        n, took = n + 1, time.thread_time() - began

while not watch.held_count():  # once more where the whole process had to wait meanwhile, which is no hold
    holder = threading.Thread(target=hold, name="holder")
    holder.start()
    holder.join()
    time.sleep(0.5)
"""


def run(code: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", QUICK + code]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_thread_that_holds_the_interpreter_is_named_with_its_stack_and_counted():
    process = run(f"{HOLD}\nprint('counted')")
    out, while_held = process.communicate(timeout=120)
    assert "counted" in out
    assert "interpreter_held" in out
    assert re.search(r"thread\S*=\S*holder", out)
    assert "in hold" in out
    assert "Current thread" in while_held
    assert "in hold" in while_held


def test_a_process_that_was_suspended_held_nothing():
    process = run(
        "print('ready', flush=True)\ntime.sleep(4)\nprint('held', watch.held_count(), flush=True)"
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "ready"
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(2)
    os.kill(process.pid, signal.SIGCONT)
    out, errors = process.communicate(timeout=120)
    assert "held 0" in out
    assert "process_was_not_running" in out
    # Stacks of threads that run again cannot be read without a crash, sooner or later.
    assert errors == ""


def test_a_process_at_work_in_many_threads_holds_nothing():
    code = """
watch.LATE_SECONDS, watch.LEAST_HELD_SECONDS = 2.0, 1.0
def work():
    ends_at = time.monotonic() + 2
    while time.monotonic() < ends_at:
        sum(range(100))

threads = [threading.Thread(target=work) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
print("held", watch.held_count())
"""
    out, _ = run(code).communicate(timeout=120)
    assert "held 0" in out


def test_the_signal_makes_a_process_write_its_stacks():
    process = run("print('ready', flush=True)\ntime.sleep(1)")
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "ready"
    os.kill(process.pid, signal.SIGPROF)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "Current thread" in errors
