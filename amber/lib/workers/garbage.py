"""Set how often Python's collector looks for objects that only refer to each other.

Whatever such a cycle holds stays in memory until the collector comes to the generation it has
reached, and what was under way during one collection is passed on to the next generation. So the
product of the three thresholds bounds how many objects of ended turns and requests may wait:
100,000, some 10 MB, or a quarter of what lives long if that is more. (With 50 million, which look
cheaper, the chat worker gained 33 MB in a thousand turns of long chats.)

Cheap, because all that was made at the start is set aside: a full collection looks at the rest
only. Before that, nearly all that is made stays: a third of what a command of one second costs would
go into looking at its modules, once in a while and when it ends.
"""

import atexit
import gc
from typing import Final

YOUNG_OBJECTS: Final = 10_000
"""More than a request makes, so that few objects are looked at twice."""
YOUNG_COLLECTIONS: Final = 5
MIDDLE_COLLECTIONS: Final = 2
LOADING_COLLECTIONS: Final = 10
"""As MIDDLE_COLLECTIONS, until a process has loaded its modules, which make a quarter of a million objects."""


def put_off() -> None:
    """Look seldom until `set_aside` is called, and at nothing when the process ends. Call it before
    modules are loaded."""
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_COLLECTIONS, LOADING_COLLECTIONS)
    atexit.register(gc.freeze)


def set_aside() -> None:
    """Exempt from collection all objects that exist now. May be called again, once more has been
    loaded."""
    gc.freeze()
    gc.collect()  # of nothing: else the next full one waits for a quarter of what was set aside
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_COLLECTIONS, MIDDLE_COLLECTIONS)
