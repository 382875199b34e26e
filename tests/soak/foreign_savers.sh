#!/usr/bin/env bash
# Savers that are not ours, under Debian's torch: how many of the states that a death could leave each in it does not survive,
# as the last section of docs/crash-points.md (FILL=docs/crash-points.md writes it there). FOREIGN=DIR has copies of karpathy/nanoGPT
# and pytorch/examples as nanoGPT and examples, whose own savers are run; without it those rows are skipped. STATES bounds the
# states of each, ROWS chooses some, KEEP=FILE keeps the rows and takes up those that are there.
# deadline: 7200 s
set -u
python=/usr/bin/python3
"$python" -c 'import torch' 2>/dev/null || { echo "$python has no torch (python3-torch)"; exit 77; }
root=$PWD dir=$TMPDIR/savers
mkdir "$dir" && cp tests/harness/crash/savers.py scenarios/jobs/rankquake.py "$dir" && cp -R "$BIN" "$dir/bin" || exit 1
rq=$dir/bin/rankquake
export NO_COLOR=1 OMP_NUM_THREADS=1 FOREIGN=${FOREIGN-}
[ -z "$FOREIGN" ] || FOREIGN=$(realpath "$FOREIGN")
states=${STATES:-400}
rows=${KEEP:-$dir/rows}
touch "$rows"
bad=0
cell() { # cell DEATH: hard failures / silent divergences / lost work of the last run, of so many ways
    awk -v death="\"death\":\"$1\"" 'index($0, death) { n++; if (match($0, /"verdict":"[^"]*"/)) c[substr($0, RSTART + 11, RLENGTH - 12)]++ }
        END { printf "%d / %d / %d, of %d", c["hard failure"], c["silent divergence"], c["lost work"], n }' "$run/trials.jsonl"
}
what() { # what [-v]: the first reason that is, or is not, one of power loss
    sed -n 's/^ *what *//p' "$dir/said" | grep ${1-} -e 'after power loss' | head -n 1 | tr '|' '/'
}
row() { # row NAME PUBLISHED WANTED COMMAND...: what ckpt-chaos has published of it; WANTED: the exit code
    local rc name=$1 published=$2 wanted=$3
    shift 3
    [[ $name =~ ${ROWS:-.} ]] || return 0
    grep -qF "| $name |" "$rows" && return
    "$rq" crashpoints --out "$dir/runs" --max-states "$states" --budget 60m --limit 120s --deaths process,power --dir ckpt -- "$@" >"$dir/said" 2>&1
    rc=$?
    [ $rc = 4 ] && { tail -n 1 "$dir/said"; exit 77; }
    [ $rc = "$wanted" ] || { echo "$name: exit $rc, not $wanted"; cat "$dir/said"; bad=1; }
    run=$(sed -n 's,/report.html$,,p' "$dir/said" | tail -n 1)
    [ -e "$run/trials.jsonl" ] || return
    echo "| $name | $states | $(cell process) | $(cell power) | $(what -v) | $(what) | $published |" >>"$rows"
    grep -F "that one rank dies alone" "$dir/said"
}
real() { # real NAME WANTED COMMAND...: of FOREIGN
    [ -n "$FOREIGN" ] && row "$1" '' "${@:2}"
}
two=(rankrun --standalone --nproc-per-node=2)
cd "$dir" || exit 1
row 'overwrite in place' '6 of 16 fail hard' 1 "$python" savers.py overwrite ckpt
row 'temporary file and os.replace' '22 of 22 pass' 1 "$python" savers.py replace ckpt
row 'the same with fsync of both' '' 0 "$python" savers.py fsync ckpt
row 'DDP, straight into checkpoint-N' '11 of 12 fail hard' 1 "${two[@]}" "$python" savers.py direct ckpt
row 'DDP, rank 0 renames checkpoint-N.tmp' '13 of 13 pass' 1 "${two[@]}" "$python" savers.py renamed ckpt
row 'DDP, rank 0 replaces one file' '' 1 "${two[@]}" "$python" savers.py ddp ckpt
row 'torch.distributed.checkpoint, 2 ranks' '' 1 "${two[@]}" "$python" savers.py dcp ckpt
real 'pytorch/examples, multinode.py' 1 "$python" savers.py multinode ckpt
real 'pytorch/examples, minGPT-ddp' 1 "$python" savers.py mingpt ckpt
real 'pytorch/examples, imagenet' 1 "$python" savers.py imagenet ckpt
if [ -n "$FOREIGN" ]; then
    # Some text, for a model that learns to write.
    cp -R "$FOREIGN/nanoGPT" "$dir/" && mkdir -p nanoGPT/data/small && cd nanoGPT || exit 1
    "$python" -c 'import pickle, random
random.seed(1)
for name in "train", "val":
    open(f"data/small/{name}.bin", "wb").write(b"".join(random.randrange(64).to_bytes(2, "little") for _ in range(4096)))
pickle.dump({"vocab_size": 64}, open("data/small/meta.pkl", "wb"))' || exit 1
    # shellcheck disable=SC2016 # it is the shell of the job that looks
    real 'nanoGPT, train.py' 1 sh -c 'from=scratch; [ ! -e ckpt/ckpt.pt ] || from=resume
        exec /usr/bin/python3 train.py --init_from=$from --out_dir=ckpt --device=cpu --compile=False --dtype=float32 --dataset=small \
        --eval_interval=2 --eval_iters=1 --log_interval=1 --max_iters=6 --batch_size=2 --block_size=16 --n_layer=1 --n_head=2 \
        --n_embd=16 --gradient_accumulation_steps=1 --always_save_checkpoint=True'
else
    echo 'FOREIGN is not set: the savers of nanoGPT and pytorch/examples are left out'
fi
cd "$root" || exit 1
section() {
    cat <<EOT
## Savers of others

Made by \`STATES=$states FOREIGN=DIR tests/soak/foreign_savers.sh\` at ${COMMIT:-$(git describe --always 2>/dev/null)}, with Debian 12's PyTorch 1.13 (\`tests/harness/crash/savers.py\`: three
saves of a small model, of which the last two are tried): the most telling states of each, as many as said, so a larger bound shows more. In
a cell: hard failures / silent divergences / lost work, of so many ways. *ckpt-chaos*: what version 0.1.1 has published of its own script
of this shape (its torch 2.14, on Windows).

| saver | states | process | power | when a process dies | only when power is lost | ckpt-chaos |
|---|---|---|---|---|---|---|
EOT
    cat "$rows"
    cat <<'EOT'

- ckpt-chaos kills an unmodified script at every file boundary of a save, and tears the file at half its size: that is the column
  *process*. What the kernel had taken and the disk had not is there in its every run, so a temporary file with `os.replace` and no
  fsync passes; when power is lost a save is lost with it that was complete.
- Its other published figures are of the Trainer of transformers 5.18 (17 of 19 fail hard; of two ranks 19 of 22, and 2 diverge) and of
  Lightning 2.6 (2 of 5 lose work). Neither is in Debian, and they are not tried here.
- The savers of pytorch/examples are the real functions, out of a copy of that repository (`FOREIGN=DIR`), called by our loop: their
  scripts themselves want a GPU or torchvision. nanoGPT's train.py runs as it is, on the CPU, started by a line of shell that resumes
  when there is a checkpoint. It does not say from which step it goes on, so lost work is not seen. karpathy/minGPT (37baab7) saves weights in
  place and reads none of them again: there is nothing to resume, and no row.
- torch.distributed.checkpoint is `torch.distributed._shard.checkpoint` in torch 1.13. Under Debian's own Python 3.11 it cannot be
  imported: line 70 of `sharded_tensor/metadata.py` has a dataclass as another's default, which wants a hash since 3.11. The job gives
  it one, and changes nothing else. It resumes from the newest directory that has a `.metadata`, which is written last. What is found
  there is an fsync that comes before Python has written what it had buffered: `.metadata` gets its name with no bytes on the disk.
  That rank 0 waits for the others inside of torch before it writes that, the job tells by the event `barrier`.
EOT
}
section >"$dir/section"
cat "$dir/section"
if [ -n "${FILL-}" ] && [ $bad = 0 ]; then
    sed '/^## Savers of others$/,$d' "$FILL" >"$dir/page" && cat "$dir/section" >>"$dir/page" && cp "$dir/page" "$FILL"
fi
exit $bad
