"""Two hosts of a bed are cut off from each other, and lose their harness in the middle of that, N times in each way. Nothing of it may
be left, and others on these hosts speak with each other again. A line for each time: "took CARRIER USER HOW WAY SECONDS", from the loss
until all is over. Usage: parted_ends.py RUN CONFIG USER FOLDER HOW WAY... (parted_hosts.py); ENDS=N times, ENDS_DEAD_MAN=SECONDS.

  harness   what it speaks through is closed, as by a harness that is killed
  carrier   the ssh, or the srun, by which a helper is reached is killed
  helper    the helper is killed; keeper: its keeper
  silent    nothing is heard, and nothing else happens
  card      the first host's card is taken off the network, until both have healed
  scancel   the allocation is cancelled; scancel-kill: with SIGKILL at once"""
import re
from parted_hosts import *

how, ways = parts[0], parts[1:]
BYSTANDERS, JOB, DEAD_MAN_S = 7009, 7010, float(os.environ.get("ENDS_DEAD_MAN", "3"))
del address["n2"]


def allocate():
    said = subprocess.run(["salloc", "--no-kill", "--no-shell", "-N2", "--ntasks-per-node=1", "-J", "ends"], capture_output=True,
                          text=True, check=True).stderr
    return int(re.search(r"Granted job allocation (\d+)", said)[1])


def card(on):
    subprocess.run(["ip", "link", "set", "vn0", *(["master", "br0"] if on else ["nomaster"])], check=True)


def lose(way, hosts, processes):
    """Both hosts lose their harness in this way; returns when."""
    began = time.monotonic()
    for h, p in zip(hosts, processes):
        if way == "harness":
            h.process.stdin.close()
            h.process.stdout.close()
        elif way == "carrier":
            h.process.kill()
        elif way in ("helper", "keeper"):
            strike(p[way])
    if way == "card":
        card(False)
    if way.startswith("scancel"):
        subprocess.run(["scancel", *(["--signal=KILL"] if way == "scancel-kill" else []), str(Host.job)], check=True)
    return began


def end_once(way, witnesses):
    """Returns after how many seconds nothing was left, and others on these hosts spoke with each other again."""
    for w in witnesses:
        w.forget()
    n0, n1 = hosts = up(JOB, ("n0", "n1"), DEAD_MAN_S)
    processes = [all_of(h) for h in hosts]
    since = max(h.part("cut", {o: {}}, way=how)[0] for h, o in ((n0, "n1"), (n1, "n0")))
    n0.until("none", "n1", since)
    others = [(w, o) for w, o in zip(witnesses, ("n1", "n0"))]
    if how == "table":
        [w.until("none", o, since) for w, o in others]
    for h in hosts:
        Host.kept.remove(h)
    began = lose(way, hosts, processes)
    over = have_ended({f"{who} on {h.name}": p for h, of in zip(hosts, processes) for who, p in of.items()})
    if way == "card":
        card(True)
    over = max([over] + [w.until("new", o, began) for w, o in others])
    left = [l for h in hosts for l in left_by(h)]
    check(not left, f"{way}: {', '.join(left)}")
    for h in hosts:
        h.process.kill()
        h.process.wait()
    if way.startswith("scancel"):
        Host.job = allocate()
    return over - began


if by_slurm:
    Host.job = allocate()
witnesses = up(BYSTANDERS, ("n0", "n1"), 0)
if how == "table" and "owned-tables" not in witnesses[0].hello["can"]:
    print("skipped: tables:", witnesses[0].hello["cannot"].get("owned-tables"))
    ways = []
if by_slurm:
    Host.job = allocate()
for way in (w for w in ways if by_slurm or not w.startswith("scancel")):
    for _ in range(int(os.environ.get("ENDS", "1"))):
        before = len(wrong)
        try:
            took = end_once(way, witnesses)
        except (OSError, KeyError, IndexError, ValueError, StopIteration, subprocess.SubprocessError) as e:
            check(False, f"{way}: {type(e).__name__}: {e}")
            break
        print("took" if len(wrong) == before else "failed", "srun" if by_slurm else "ssh", user, how, way, f"{took:.3f}", flush=True)
[w.end() for w in witnesses]
if by_slurm:
    subprocess.run(["scancel", "--name=ends"], check=True)
print(*wrong, sep="\n", end="\n" if wrong else "")
sys.exit(1 if wrong else 0)
