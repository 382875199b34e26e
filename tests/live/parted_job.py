"""A job that tells, a line each, what passes between it and others: `old PEER T` when an answer comes on the connection that it
began with, `new PEER T` when a new one is answered, `none PEER T` when one is not. T is CLOCK_MONOTONIC. Usage:
parted_job.py OWN_ADDRESS PORT PEER=ADDRESS..."""
import socket, sys, threading, time

own, port = sys.argv[1], int(sys.argv[2])
peers = [p.split("=") for p in sys.argv[3:]]
family = socket.AF_INET6 if ":" in own else socket.AF_INET


def tell(*words):
    sys.stdout.write(" ".join(words) + f" {time.monotonic():.6f}\n")
    sys.stdout.flush()


def answer(connection):
    try:
        while byte := connection.recv(64):
            connection.sendall(byte)
    except OSError:
        pass
    connection.close()


def serve(server):
    while True:
        threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()


def ask(connection, name, word):
    connection.sendall(b"x")
    if not connection.recv(64):
        raise OSError("closed")
    tell(word, name)


def keep_on(name, address):
    while True:
        try:
            connection = socket.create_connection((address, port))
            while True:
                ask(connection, name, "old")
                time.sleep(0.04)
        except OSError:
            time.sleep(0.05)


def begin_again(name, address):
    while True:
        try:
            with socket.create_connection((address, port), 0.25) as connection:
                ask(connection, name, "new")
                time.sleep(0.05)
        except OSError:
            tell("none", name)
            time.sleep(0.05)


server = socket.socket(family)
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind((own, port))
server.listen(64)
for name, address in peers:
    threading.Thread(target=keep_on, args=(name, address), daemon=True).start()
    threading.Thread(target=begin_again, args=(name, address), daemon=True).start()
serve(server)
