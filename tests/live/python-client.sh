#!/usr/bin/env bash
# A script in Python that speaks through scenarios/jobs/rankquake.py is held at the step that a scenario
# names, killed there, and goes on from its own checkpoint.
set -u
if ! command -v python3 >/dev/null; then
    echo 'python3 is missing'
    exit 77
fi
# The digest of a model: of its names and values, in whatever order they come; bfloat16 has no array of its own.
PYTHONPATH=$PWD/scenarios/jobs python3 - <<E2 || exit 1
import array, rankquake

class Tensor:  # as PyTorch's, as far as digest() asks
    def __init__(self, values, dtype="torch.float32"): self.values, self.dtype = values, dtype
    def detach(self): return self
    def cpu(self): return self
    def contiguous(self): return self
    def float(self): return Tensor(self.values)
    def numpy(self):
        assert self.dtype != "torch.bfloat16", "numpy has no bfloat16"
        return array.array("f", self.values)

one = rankquake.digest({"a": Tensor([1, 2]), "b": Tensor([3])})
assert len(one) == 64
assert one == rankquake.digest({"b": Tensor([3]), "a": Tensor([1, 2], "torch.bfloat16")})
assert one != rankquake.digest({"a": Tensor([1, 2]), "b": Tensor([4])})
assert one != rankquake.digest({"a": Tensor([1, 2]), "c": Tensor([3])})
assert one != rankquake.digest({"a": Tensor([1]), "b": Tensor([2, 3])})
with rankquake.Client() as rq:  # nobody listens
    assert not rq.listening and rq.done(one) is None
E2
cat >"$TMPDIR/train.py" <<E2
import os, sys
sys.path.insert(0, "$PWD/scenarios/jobs")
import rankquake

state, steps = sys.argv[1], 40
rq = rankquake.Client()
rq.ready()
step = int(open(state).read()) if os.path.exists(state) else 0
rq.resume(step, state if step else "")
for step in range(step + 1, steps + 1):
    if rq.asks("samples"):  # four of forty, in another order in each epoch
        epoch, place = divmod(step - 1, 10)
        rq.samples(step, epoch, 40, [(7 + 2 * epoch) * (4 * place + i) % 40 if epoch != 0 else 4 * place + i for i in range(4)])
    rq.step(step, loss=1 / step, samples=1, weights="%032x" % step if rq.asks("weights") else None)
    if step % 10 == 0:
        with open(state + ".new", "w") as f:
            f.write(str(step))
        os.rename(state + ".new", state)
rq.done("0" * 64)
E2
cat >"$TMPDIR/python.yaml" <<E2
scenario: python
cluster: {nodes: 1}
job:
  nnodes: "1:1"
  run: [python3, $TMPDIR/train.py, "{shared}/state"]
timeline:
  - {when: {step: 37}, fault: worker-kill, on: rank 0}
expect: {restarts: 1, world_sizes: [1, 1], model: same-as-undisturbed, weights: same-as-undisturbed, epochs: shuffled}
E2
"$BIN/rankquake" run "$TMPDIR/python.yaml" --out "$TMPDIR/out" >"$TMPDIR/said" 2>&1
rc=$?
[ $rc = 4 ] && { tail -n 1 "$TMPDIR/said"; exit 77; }
[ $rc = 0 ] || { cat "$TMPDIR/said"; exit 1; }
history=$(echo "$TMPDIR"/out/*/history.jsonl)
# Held at 37, so 38 was never reached in the first round; the second went on from 30.
first=$(grep -n '"kind":"fault-in-force"' "$history" | cut -d: -f1)
head -n "$first" "$history" | grep -q '"kind":"step".*"step":38[,}]' && { echo 'step 38 was begun before the kill'; exit 1; }
tail -n "+$first" "$history" | grep -q '"kind":"resume".*"step":30[,}]' || { echo 'it did not resume from 30'; exit 1; }
# A virtual environment below /tmp, which a node has of its own, is one there too: named by the job, or found in PATH.
python3 -m venv --without-pip "$TMPDIR/venv" >"$TMPDIR/said" 2>&1 || exit 0
for python in "$TMPDIR/venv/bin/python" python; do
    printf 'scenario: venv\ncluster: {nodes: 1}\njob: {run: [%s, -c, "import sys; sys.exit(sys.prefix == sys.base_prefix)"]}\n' "$python" >"$TMPDIR/venv.yaml"
    PATH=$TMPDIR/venv/bin:$PATH "$BIN/rankquake" run "$TMPDIR/venv.yaml" --out "$TMPDIR/venv-out" >"$TMPDIR/said" 2>&1 ||
        { echo "$python is not of the virtual environment"; cat "$TMPDIR/said"; exit 1; }
done
