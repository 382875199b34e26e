#!/usr/bin/env bash
# PyTorch's own client of the file timer (torch.distributed.elastic.timer) under rankrun: a block that ends in time does
# nothing, one that does not kills its worker, and the job goes on with the next round.
# deadline: 120 s
set -u
run=$(cd "$BIN" && pwd)/rankrun
cd "$TMPDIR" || exit 1
for python in python3 /usr/bin/python3 none; do
    "$python" -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("torch"))' 2>/dev/null && break
done
if [ $python = none ]; then
    echo 'no python3 with torch on this host: apt install python3-torch'
    exit 77
fi
cat >timed.py <<'END'
import os, time
import torch.distributed.elastic.timer as timer
timer.configure(timer.FileTimerClient(os.environ["TORCHELASTIC_TIMER_FILE"]))
with timer.expires(after=60, scope="short"):
    pass
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    with timer.expires(after=0.2, scope="long"):
        time.sleep(60)
END
TORCHELASTIC_ENABLE_FILE_TIMER=1 PYTHON_EXEC=$python timeout 100 "$run" --max-restarts 1 timed.py 2>said || { cat said && exit 1; }
grep -q 'its timer "long" expired' said || { cat said && exit 1; }
exit 0
