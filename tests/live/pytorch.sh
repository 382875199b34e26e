#!/usr/bin/env bash
# The PyTorch scripts as users write them: where the interpreter has no torch their scenarios are skipped and say so;
# where one has, a worker dies and the job ends with the weights of the control run.
# deadline: 240 s
set -u
rq=$(realpath "$BIN/rankquake")
cd "$(dirname "$0")/../.." || exit 1
dir=$TMPDIR/pytorch
mkdir -p "$dir/none" "$dir/bin" || exit 1
export XDG_CACHE_HOME=$TMPDIR/cache

# Wherever this is, a Python that has nothing.
printf '#!/bin/sh\necho no\n' >"$dir/none/python3"
chmod +x "$dir/none/python3"
for scenario in scenarios/pytorch/*.yaml; do
    PATH=$dir/none:$PATH "$rq" run "$scenario" --out "$dir/out" >"$dir/said" 2>&1 </dev/null
    rc=$?
    if [ $rc != 4 ] || ! grep -q 'job.needs: python3 has no module torch; install it there' "$dir/said"; then
        echo "$scenario without torch: exit $rc, wanted 4"
        cat "$dir/said"
        exit 1
    fi
done

for python in python3 /usr/bin/python3; do
    "$python" -c 'import torch.distributed, numpy; exit(not torch.distributed.is_gloo_available())' 2>/dev/null && break
    python=
done
if [ -z "${python-}" ]; then
    echo 'no Python here has PyTorch with gloo'
    exit 77
fi
ln -s "$(type -P "$python")" "$dir/bin/python3"
# A torch that has no FSDP here is told so by the script, before it trains, with a code of its own; the scenario is skipped for it.
if ! why=$("$python" -c 'import torch.distributed.fsdp' 2>&1); then
    "$python" scenarios/jobs/pytorch/fsdp.py >"$dir/said" 2>&1
    if [ $? != 78 ] || ! grep -qF "cannot shard a model here: importing torch.distributed.fsdp ends in \"$(tail -n 1 <<<"${why#*: }" |
        sed 's/^[A-Za-z]*: //')" "$dir/said"; then
        echo "fsdp.py: $why"
        cat "$dir/said"
        exit 1
    fi
fi
PATH=$dir/bin:$PATH "$rq" run scenarios/pytorch/ddp.yaml --out "$dir/out" >"$dir/said" 2>&1 </dev/null
rc=$?
[ $rc = 4 ] && { tail -n 1 "$dir/said"; exit 77; }
[ $rc = 0 ] && grep -q 'as in the control run' "$dir/said" && exit 0
echo "ddp.yaml: exit $rc, wanted 0"
cat "$dir/said"
exit 1
