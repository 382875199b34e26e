#!/usr/bin/env bash
# Every PyTorch script of scenarios/jobs/pytorch under rankrun and under the system's torchrun, over gloo, or NCCL where there is a
# GPU: undisturbed, with a worker killed and no restart, and started again: it goes on from what was saved, and both ends are the same
# model, under either launcher. Beside the parameter server its evaluator, which tells of every model that is saved.
# LAUNCHERS=, TWINS=, PYTHON= and WORKERS= (of a node) play some of it.
# deadline: 2400 s
set -u
PATH=$(realpath "$BIN"):$PATH
jobs=$PWD/scenarios/jobs
export PYTHONPATH=$jobs OMP_NUM_THREADS=1
cd "$TMPDIR" || exit 1
bad=0
for python in ${PYTHON-} python3 /usr/bin/python3; do
    "$python" -c 'import torch.distributed, numpy; exit(not torch.distributed.is_gloo_available())' 2>/dev/null && break
    python=
done
[ -n "$python" ] || { echo 'no Python here has PyTorch with gloo: apt install python3-torch'; exit 77; }
gpus=$("$python" -c 'import torch; print(torch.cuda.device_count() if torch.cuda.is_available() else 0)')
workers=${WORKERS:-$((gpus > 0 && gpus < 2 ? 1 : 2))}
echo "$("$python" -c 'import torch; print("PyTorch", torch.__version__)'), $gpus GPUs, $workers workers"
fail() {
    echo "$*"
    tail -n 20 said
    bad=1
}
launch() { # launch LAUNCHER WORKERS SCRIPT...: each worker leaves its number in pid.RANK
    local n=$2 note=(--no_python sh -c 'echo $$$$ >"pid.$RANK"; exec "$0" "$@"' "$python")
    if [ "$1" = rankrun ]; then
        exec rankrun --standalone --nproc_per_node="$n" "${note[@]}" "${@:3}"
    fi
    exec "$python" -m torch.distributed.run --redirects 1 --tee 1 --nnodes=1 --rdzv_backend=c10d --rdzv_endpoint=127.0.0.1:0 \
        --rdzv_id=twins --nproc_per_node="$n" "${note[@]}" "${@:3}"
}
model() { grep -oE 'model [0-9a-f]{64}' said; }
twin() { # twin NAME WORKERS LINE COMMAND...: at a line of its output that holds LINE the last rank is killed
    local name=$1 n=$2 line=$3 launcher whole='' told pid
    [[ " ${TWINS:-$1} " == *" $1 "* ]] || return
    shift 3
    for launcher in ${LAUNCHERS:-rankrun torchrun}; do
        rm -rf kept && mkdir kept
        (launch "$launcher" "$n" "$@") >said 2>&1 || { fail "$name, $launcher: exit $?"; continue; }
        whole=${whole:-$(model)}
        [ -n "$whole" ] && [ "$(model)" = "$whole" ] || fail "$name, $launcher: '$(model)', not '$whole'"
        if [ "$n" = 1 ]; then echo "$name, $launcher: one worker, $whole"; continue; fi
        rm -rf kept && mkdir kept
        rm -f pid.*
        exec 5< <(launch "$launcher" "$n" "$@" 2>&1)
        pid=''
        while read -r -t 200 -u 5 told; do
            echo "$told"
            [[ -z $pid && $told == *"$line"* ]] && pid=$(cat pid.$((n - 1))) && kill -KILL "$pid"
        done >said
        exec 5<&-
        [ -n "$pid" ] || fail "$name, $launcher: no worker was killed"
        grep -q 'model ' said && fail "$name, $launcher: it was done in spite of it"
        (launch "$launcher" "$n" "$@") >said 2>&1 || fail "$name, $launcher, again: exit $?"
        grep -qE 'go(es|ing)? on from (epoch [0-9]+, )?step [1-9]|holds step [1-9]' said || fail "$name, $launcher: it began anew"
        [ "$(model)" = "$whole" ] || fail "$name, $launcher, again: '$(model)', not '$whole'"
        echo "$name, $launcher: killed and started again, $whole"
    done
}
p=$jobs/pytorch
twin ddp "$workers" 'epoch 3/' "$p/ddp.py" --epochs=6 --pause=0.05 --snapshot=kept/snapshot.pt
twin elastic_sampler "$workers" 'step 30/' "$p/elastic_sampler.py" --steps=60 --pause=0.05 --checkpoints=kept
twin zero "$workers" 'step 20/' "$p/zero.py" --steps=60 --pause=0.05 --checkpoint=kept/zero.pt

# P = 3 workers and a server; the evaluator follows from before the first model until the last, over the death.
if [[ " ${TWINS:-parameter_server} " == *' parameter_server '* ]]; then
    for launcher in ${LAUNCHERS:-rankrun torchrun}; do
        rm -rf models
        timeout 600 "$python" "$p/parameter_server.py" --evaluate --max-steps=60 --eval-freq=10 --train-dir=models >"evaluated.$launcher" 2>&1 &
        evaluator=$!
        (launch "$launcher" 4 "$p/parameter_server.py" --max-steps=60 --eval-freq=10 --train-dir=models) >said 2>&1 ||
            fail "parameter_server, $launcher: exit $?"
        wait $evaluator || fail "the evaluator: exit $?"
        [ "$(grep -oE '^evaluator: step [0-9]+ loss [0-9.]+ accuracy [0-9.]+' "evaluated.$launcher" | grep -oE 'step [0-9]+')" = \
            "$(printf 'step %d\n' 10 20 30 40 50 60)" ] || { cat "evaluated.$launcher"; fail "the evaluator, $launcher"; }
        awk '/^evaluator/ { last = $7 } END { exit !(last >= 0.5) }' "evaluated.$launcher" || fail "nothing was learned: $(cat "evaluated.$launcher")"
    done
    cmp -s evaluated.rankrun evaluated.torchrun || [ -n "${LAUNCHERS-}" ] || fail "the evaluators: $(tail -n 9 evaluated.*)"
fi
twin parameter_server 4 'step 30/' "$p/parameter_server.py" --max-steps=60 --eval-freq=10 --pause=0.05 --train-dir=kept

if "$python" -c 'import torchvision' 2>/dev/null; then
    ranktrain prepare --dataset=generated --as=folders --samples=192 --to=pictures >said 2>&1 || fail prepare
    twin imagenet "$workers" 'step 10 ' "$p/imagenet.py" pictures --arch=shufflenet_v2_x0_5 --epochs=2 --batch-size=16 --image-size=32 \
        -j 1 --lr=0.02 --pause=0.1 -p 5 --checkpoint-every=5 --checkpoint-dir=kept
else
    echo 'imagenet: skipped: no torchvision: apt install python3-torchvision'
fi

# Where torch cannot, it says so before anything is trained.
if "$python" -c 'import torch.distributed.fsdp' 2>/dev/null; then
    twin fsdp "$workers" 'step 20/' "$p/fsdp.py" --steps=60 --pause=0.05 --checkpoint=kept/fsdp.pt
else
    "$python" "$p/fsdp.py" >said 2>&1
    [ $? = 78 ] && grep -q 'cannot shard a model here: importing torch.distributed.fsdp ends in ' said || fail 'fsdp: no sentence'
    echo "fsdp: $(cat said)"
fi
exit $bad
