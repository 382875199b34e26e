"""A host whose clock stands still until it is set, for programs that are begun with env: played_host.c, preloaded. Of the standard library alone."""
import mmap
import os
import subprocess
import time


class Clock:
    """It begins at the kernel's, in whole units of so many nanoseconds, as those who wait for it know no less."""

    def __init__(self, place, unit):
        library, path = place.inside("played_host.so"), place.inside("now")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "played_host.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        with open(path, "w+b") as f:
            f.write(bytes(8))
            f.flush()
            self.page = mmap.mmap(f.fileno(), 8)
        self.env = {"LD_PRELOAD": library, "PLAYED_CLOCK": path}
        self.set(time.monotonic_ns() // unit * unit)

    def set(self, ns):
        self.now, self.page[:] = ns, ns.to_bytes(8, "little")
