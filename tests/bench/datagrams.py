"""What becomes of datagrams on their way: rank 1 sends COUNT of 1,000 bytes to rank 0, GAP_US apart, once the harness lets it
go; rank 0 prints how many came, how long they were under way and how many bits a second arrived.

datagrams.py CLIENT_DIR COUNT GAP_US
"""
import os
import socket
import struct
import sys
import time

sys.path.insert(0, sys.argv[1])
import rankquake  # noqa: E402

COUNT, GAP_US, PORT, SIZE = int(sys.argv[2]), int(sys.argv[3]), 7009, 1000
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if os.environ["RANK"] == "0":
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    s.bind(("", PORT))
    s.settimeout(30)
    took, came = [], []
    while True:
        said = s.recv(2000)
        now = time.monotonic_ns()
        n, sent = struct.unpack_from("qq", said)
        if n < 0:
            break
        took.append(now - sent)
        came.append(now)
        s.settimeout(5)
    # On the wire each has 42 bytes more: Ethernet, IP and UDP.
    bits = (len(came) - 1) * (SIZE + 42) * 8 / ((came[-1] - came[0]) / 1e9)
    print("came %d of %d, under way %.3f ms, %.0f bit/s" % (len(came), COUNT, sum(took) / len(took) / 1e6, bits), flush=True)
else:
    whom = (os.environ["MASTER_ADDR"], PORT)
    q = rankquake.Client()
    q.event("other", said="goes")
    began = time.monotonic_ns()
    for i in range(COUNT):
        due = began + i * GAP_US * 1000
        while time.monotonic_ns() < due:
            pass
        s.sendto(struct.pack("qq", i, time.monotonic_ns()).ljust(SIZE, b"."), whom)
    for _ in range(50):  # the end may be lost as well
        time.sleep(0.1)
        s.sendto(struct.pack("qq", -1, 0), whom)
