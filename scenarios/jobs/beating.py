"""A job of the standard library alone: it steps by its own clock, and a second thread beats beside it, as a watchdog's
does. Usage: beating.py STEPS [alone]; with "alone" there is no second thread."""
import sys
import threading
import time

import rankquake


def beat():
    while True:
        time.sleep(0.005)


def main():
    if "alone" not in sys.argv:
        threading.Thread(target=beat, daemon=True).start()
    rq = rankquake.Client()
    rq.ready()
    for step in range(1, int(sys.argv[1]) + 1):
        time.sleep(0.02)
        rq.step(step, loss=1 / step, samples=1)
    rq.done("0" * 64)


if __name__ == "__main__":
    main()
