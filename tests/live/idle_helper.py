"""A node helper that says that a fault on a disk is in force, and undone, and does nothing: what else it is told, and all that it
tells, is a real one's. Usage: idle_helper.py COMMAND..., which is the real one."""
import json, os, struct, subprocess, sys, threading, time


def frames(read):
    while head := read.read(4):
        yield head + read.read(struct.unpack(">I", head)[0])


def write(frame):
    with lock:
        sys.stdout.buffer.write(frame)
        sys.stdout.buffer.flush()


def relay_answers():
    for frame in frames(real.stdout):
        write(frame)


lock = threading.Lock()
real = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
threading.Thread(target=relay_answers).start()
for frame in frames(sys.stdin.buffer):
    order = json.loads(frame[4:])
    if order["op"] == "fault" and order["fault"].startswith("disk-"):
        text = json.dumps({"op": "injected", "t": time.monotonic_ns(), "token": order["token"], "error": None}).encode()
        write(struct.pack(">I", len(text)) + text)
    else:
        real.stdin.write(frame)
        real.stdin.flush()
real.stdin.close()
