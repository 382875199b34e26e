"""Stands before a TLS server: slow_tls.py SERVER-PORT MS prints its own port, and a line for each connection. What the
server says first on one comes MS later, so that no handshake ends sooner; everything after that passes at once."""
import socket
import sys
import threading
import time

server_port, late_s = int(sys.argv[1]), int(sys.argv[2]) / 1000


def carry(source, sink, late):
    try:
        while data := source.recv(65536):
            if late:
                time.sleep(late)
                late = 0
            sink.sendall(data)
    except OSError:
        pass
    for s in (source, sink):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    client, _ = listener.accept()
    server = socket.create_connection(("127.0.0.1", server_port))
    print("connection", flush=True)
    threading.Thread(target=carry, args=(client, server, 0), daemon=True).start()
    threading.Thread(target=carry, args=(server, client, late_s), daemon=True).start()
