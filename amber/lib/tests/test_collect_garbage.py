"""Objects that refer to each other do not wait for hours until they are collected, nor are they looked for in vain."""

import subprocess
import sys

from amber.lib.workers import garbage

_MANY_TURNS = """
from collections import deque
from amber.lib.workers import garbage

class Turn:
    alive = 0
    def __init__(self):
        self.myself = [self]
        Turn.alive += 1
    def __del__(self):
        Turn.alive -= 1

garbage.set_aside()
under_way, most = deque(maxlen=UNDER_WAY), 0
for _ in range(300_000):
    under_way.append(Turn())
    most = max(most, Turn.alive)
print(most)
"""
_UNDER_WAY = 20_000
"""As many as a young collection finds under way, and therefore passes on."""


def test_bounds_what_ended_turns_leave():
    program = _MANY_TURNS.replace("UNDER_WAY", str(_UNDER_WAY))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    bound = garbage.YOUNG_OBJECTS * garbage.YOUNG_COLLECTIONS * garbage.MIDDLE_COLLECTIONS
    assert _UNDER_WAY <= int(done.stdout) <= _UNDER_WAY + bound


_SHORT_COMMAND = """
import gc
from amber.lib.workers import garbage

class Module:
    def __init__(self):
        self.myself = self
    def __del__(self):
        print("was looked for")

garbage.put_off()
whole = gc.get_stats()[-1]["collections"]
kept = [Module()] + [[] for _ in range(300_000)]
print(gc.get_stats()[-1]["collections"] - whole, "while it was loaded")
"""


def test_a_short_command_looks_for_nothing_among_its_modules():
    done = subprocess.run([sys.executable, "-c", _SHORT_COMMAND], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0 while it was loaded\n", "")
