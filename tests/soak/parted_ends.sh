#!/usr/bin/env bash
# Two hosts that are cut off from each other lose their harness a hundred times in each way: it is killed, ssh is, the helper, its keeper,
# nothing is heard, the card is taken off. Nothing of it is left, and others on these hosts speak with each other again within the time
# of silence and a second. How long each took is printed. ENDS=N: so many times; ENDS_WAYS: which ways.
# deadline: 7200 s
set -u
bin=${BIN:-build/bin} fails=0
bed=$TMPDIR/bed
tests/clusters/ssh up "$bed" 2 >"$TMPDIR/said" 2>&1
case $? in
0) trap 'tests/clusters/ssh down "$bed"' EXIT ;;
77) cat "$TMPDIR/said"; exit 77 ;;
*) echo "no hosts: $(cat "$TMPDIR/said")"; exit 1 ;;
esac
chmod 711 "$TMPDIR"
cp tests/live/parted_job.py "$bin/rankquake-node" "$TMPDIR" && chmod 755 "$TMPDIR"/rankquake-node "$TMPDIR"/parted_job.py
export ENDS=${ENDS:-100} ENDS_WITHIN=${ENDS_WITHIN:-4}
for user in worker root; do
    tests/clusters/ssh in "$bed" ctl python3 tests/live/parted.py "ends-$$" "$bed/ssh_config" $user "$TMPDIR" refusals ends || fails=1
done
exit $fails
