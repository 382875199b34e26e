"""Tells the harness COUNT times that something is about to happen, so that a fault can come at each, and PAUSE_MS later goes on.

asks.py CLIENT_DIR COUNT PAUSE_MS
"""
import sys
import time

sys.path.insert(0, sys.argv[1])
import rankquake  # noqa: E402

q = rankquake.Client()
for n in range(int(sys.argv[2])):
    q.event("other", said="asks", n=n)
    time.sleep(int(sys.argv[3]) / 1e3)
