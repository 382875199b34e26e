"""Two workers, the second of which is made to forget its connections with the first: once so that the first is told when it
sends, and once so that it never is."""
import errno
import os
import socket
import sys


def say(what):
    print(what, flush=True)


def state(connection):  # 1: established
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[0]


def ends_with(connection):
    try:
        connection.recv(1)
        return "nothing"
    except OSError as e:
        return errno.errorcode[e.errno]


def believes():
    listener = socket.create_server(("", 7777))
    for kind in "told", "untold":
        connection, _ = listener.accept()
        listener.accept()[0].close()  # the other has forgotten, and says so on another one
        say(f"{kind}: believes in state {state(connection)}")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 300)
        connection.send(b"x")
        say(f"{kind}: learns by {ends_with(connection)}")
        listener.accept()[0].close()


def forgets():
    for kind in "told", "untold":
        connection = connect()
        say(f"{kind}: connected")
        say(f"{kind}: forgets by {ends_with(connection)}")
        connect().close()
        connect().recv(1)  # until the other has learnt of it
        say(f"{kind}: is over")


def connect():  # the other may not listen yet
    while True:
        try:
            return socket.create_connection((os.environ["MASTER_ADDR"], 7777), timeout=None)
        except ConnectionRefusedError:
            pass


if sys.argv[1].endswith("/control"):
    sys.exit()
socket.setdefaulttimeout(50)
believes() if os.environ["RANK"] == "0" else forgets()
