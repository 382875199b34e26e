"""A job whose last rank lets each system call of one command for many hosts fail once, of what stands at their other end, and of those that ask how a
job is, or tell how it ended (failing_table.py). Usage: failing_hosts.py STEPS hosts; without a job, of the rankrun in the PATH: failing_hosts.py alone hosts."""
import failing_table
import playing
import trying
from failing_table import Table

UNTIL_EXEC = "-f", "--detach-on=execve"
HOST = "--hosts=192.0.2.1"
HOSTS = "--hosts=192.0.2.1,192.0.2.2", "--ssh=./far", "--everywhere", "sh", "-c"
JOB = ('cur={"inc":"1","min":1,"max":3,"max_restarts":5,"hb_ns":500000000}', '1/m/a={"node":"na","addr":"1.1.1.1","slots":2,"role":"ro"}', '1/s/a={"seq":1}',
       'watch', '+1/s/a={"seq":2}')


def far(run, text="shift; exec RANKRUN ${1##*rankrun\\' }"):
    """What stands for ssh."""
    run.place.program("#!/bin/sh\n" + text.replace("RANKRUN", trying.rankrun()) + "\n", name="far")


def fleet(run):
    far(run)
    return run.ended(run.begin(HOST, *HOSTS[1:], "echo out", before=run.traced(*UNTIL_EXEC)))


def fleet_fails(run):
    far(run)
    return run.ended(run.begin(*HOSTS, "exit 3", before=run.traced(*UNTIL_EXEC)))


def fleet_told(run):
    far(run)
    by = ["sh", "-c", 'export AGENT=$$; exec "$@"', "told", *run.traced("-D", *UNTIL_EXEC)]
    return run.ended(run.begin(HOST, *HOSTS[1:], "kill -TERM $AGENT; exec sleep 30", before=by))


def fleet_here(run):
    return run.ended(run.begin("--hosts=127.0.0.1", "--rdzv-id=r", "sh", "-c", "echo $RANK", before=run.traced(*UNTIL_EXEC)))


def fleet_by_file(run):
    with open(run.place.inside("hosts"), "w") as f:
        f.write("192.0.2.1 slots=2\n")
    far(run, "head -c 160 >/dev/null")
    return run.ended(run.begin("--hostfile=hosts", "--ssh=./far", "--rdzv-id=r", "true", before=run.traced(*UNTIL_EXEC)))


def traced_far(run, text):
    words = " ".join(f"'{word}'" for word in run.traced(*UNTIL_EXEC))
    far(run, text.replace("TRACED", words))


def other_end(run):
    traced_far(run, "exec TRACED RANKRUN remote")
    return run.ended(run.begin(HOST, *HOSTS[1:], "echo out; exit 3"))


def other_end_of_agent(run):
    traced_far(run, "exec TRACED RANKRUN remote --log-format=json")
    return run.ended(run.begin(HOST, "--ssh=./far", "--rdzv-id=r", "--rdzv-endpoint=127.0.0.1:0", "sh", "-c", "echo out; exit 3"))


def outcome(run):
    return run.ended(run.begin("outcome", "sh", "-c", 'echo 3 >"$RANKRUN_OUTCOME"; exit 5', before=run.traced(*UNTIL_EXEC)))


def status(run, who=playing.Keys(JOB), backend="embedded"):
    player = playing.Player()
    player.who = who
    code = run.ended(run.begin("status", "--rdzv-id=r", f"--rdzv-backend={backend}", f"--rdzv-endpoint={player.place}", before=run.traced()))
    player.shutdown()
    player.server_close()
    return code


def status_of_tree(run):
    return status(run, playing.Tree(['active_version={"status":"setup"}']), "etcd")


if __name__ == "__main__":
    failing_table.main(hosts=Table("failing-hosts.txt", 3, fleet, fleet_fails, fleet_told, fleet_here, fleet_by_file, other_end, other_end_of_agent, outcome, status, status_of_tree))
