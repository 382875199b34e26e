"""A full mesh: each rank says its number to every other over TCP, hears theirs, and prints how long that took.

mesh.py NODES: rank and node are found by the address that the node has.
"""
import socket
import sys
import threading
import time

NODES, PORT = int(sys.argv[1]), 7011
me = int(socket.gethostname()[1:])
heard = set()
server = socket.create_server(("", PORT), backlog=NODES)


def take():
    while len(heard) < NODES - 1:
        c, _ = server.accept()
        with c:
            heard.add(int(c.recv(16)))
            c.sendall(b"heard")


taker = threading.Thread(target=take)
taker.start()
began = time.monotonic_ns()
for n in range(NODES):
    while n != me:
        try:
            with socket.create_connection(("198.18.0.%d" % (10 + n), PORT), timeout=10) as c:
                c.sendall(b"%d" % me)
                if c.recv(16) == b"heard":
                    break
        except ConnectionRefusedError:  # its rank has not begun to listen
            pass
taker.join()
print("met %d others in %.0f ms" % (len(heard), (time.monotonic_ns() - began) / 1e6), flush=True)
