"""A job whose last rank lets each system call of launchers of one node fail once, of the parent of their workers and of those workers until they are another program, and of
a store that a launcher meets at (failing_table.py). Usage: failing_alone.py STEPS alone; without a job, of the rankrun in the PATH: failing_alone.py alone alone."""
import signal
import socket

import failing_table
from failing_table import Table

ALL = "-f", "--detach-on=execve"
SHOWN = "--log-dir=logs", "--tee=3", "--redirects=1", "--duplicate-stdout-filters=out", "--duplicate-stderr-filters=err"


def agent(run):
    return run.ended(run.begin("--standalone", "--rdzv-id=r", "sh", "-c", "echo out", before=run.traced(*ALL)))


def agent_shows(run):
    """What is shown, kept and filtered."""
    return run.ended(run.begin("--standalone", "--rdzv-id=r", *SHOWN, "sh", "-c", "echo out; echo err >&2", before=run.traced(*ALL)))


def agent_fails(run):
    text = 'printf \'{"message": "it is tried"}\' >"$TORCHELASTIC_ERROR_FILE"; exit 3'
    return run.ended(run.begin("--standalone", "--rdzv-id=r", "--max-restarts=1", "sh", "-c", text, before=run.traced(*ALL)))


def agent_told(run):
    """It is asked to end by its worker."""
    by = ["sh", "-c", 'export AGENT=$$; exec "$@"', "told", *run.traced("-D", *ALL)]
    return run.ended(run.begin("--standalone", "--rdzv-id=r", "sh", "-c", "kill -TERM $AGENT; exec sleep 30", before=by))


def agent_serves(run):
    """It serves the store that it meets at, to others too."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return run.ended(run.begin("--nnodes=1:2", "--rdzv-id=r", f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-conf=last_call_timeout=0,join_timeout=3,quarantine=never", "sh", "-c", "echo out", before=run.traced(*ALL)))


def store(run):
    """It listens, takes a request, and is told to end."""
    by = ["sh", "-c", 'export STORE=$$; exec "$@"', "told", *run.traced("-D", *ALL)]
    child = run.begin("store", "--host=127.0.0.1", "--port=0", before=by)
    line = next((line for line in child.stdout if "listening" in line), "")
    run.said += line
    if line:
        child.send_signal(signal.SIGTERM)
    return run.ended(child)


if __name__ == "__main__":
    failing_table.main(alone=Table("failing-alone.txt", 1, agent, agent_shows, agent_fails, agent_told, agent_serves, store))
