"""A node helper whose clock drifts: starts the command of one, and hands on what is said, but that all stamps of the
helper run fast by PPM since the first of them. Usage: drifting.py PPM FILE COMMAND..., where FILE gets that first stamp.
STEP, if it is set, is added to the stamps behind the STEP_AFTER-th `clock` that it answers as a node."""
import json, os, struct, subprocess, sys, threading

ppm, file, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
step, step_after = int(os.environ.get("STEP", "0")), int(os.environ.get("STEP_AFTER", "0"))
helper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
first = None
ready, clocks = False, 0


def to_helper():
    while chunk := os.read(0, 65536):
        try:
            helper.stdin.write(chunk)
        except BrokenPipeError:
            break
    helper.stdin.close()


def whole(n):
    got = b""
    while len(got) < n:
        more = os.read(helper.stdout.fileno(), n - len(got))
        if not more:
            return None
        got += more
    return got


def drifted(stamp):
    global first
    if first is None:
        first = stamp
        with open(file + ".new", "w") as out:
            out.write(str(first))
        os.rename(file + ".new", file)
    return stamp + (stamp - first) * ppm // 1000000 + (step if clocks > step_after else 0)


threading.Thread(target=to_helper, daemon=True).start()
while head := whole(4):
    message = json.loads(whole(struct.unpack(">I", head)[0]))
    ready |= message["op"] == "ready"
    clocks += ready and message["op"] == "clock"
    for name in ("t", "t2", "t3"):
        if message.get(name):
            message[name] = drifted(message[name])
    text = json.dumps(message).encode()
    sys.stdout.buffer.write(struct.pack(">I", len(text)) + text)
    sys.stdout.buffer.flush()
sys.exit(helper.wait())
