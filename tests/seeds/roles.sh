#!/usr/bin/env bash
# S1 1.9: workers of several roles in one job. Three nodes with --role=trainer --nproc_per_node=2 and one with
# --role=reader --nproc_per_node=1: ranks run over the job, ROLE_RANK and ROLE_WORLD_SIZE over the role. The trainers are a group
# of ranktrain by their role's numbers, and the reader is its evaluator.
set -u
PATH=$(cd "$BIN" && pwd):$PATH
run=$(command -v rankrun)
cd "$TMPDIR" || exit 1
fail() {
    echo "$*"
    cat said
    exit 1
}
exec 5< <(exec "$run" store --host=127.0.0.1 --port=0)
store=$!
trap 'kill $store 2>/dev/null' EXIT
read -r -t 180 -u 5 line
agents=()
for node in 'trainer 2' 'reader 1' 'trainer 2' 'trainer 2'; do
    timeout 300 "$run" --nnodes=4 --rdzv_id=roles --rdzv_backend=embedded --rdzv_endpoint="127.0.0.1:${line##*:}" \
        --role="${node% *}" --nproc_per_node="${node#* }" bash -c \
        'echo "$ROLE_NAME $ROLE_RANK of $ROLE_WORLD_SIZE, $RANK of $WORLD_SIZE, $LOCAL_WORLD_SIZE" >>told
         export RANK=$ROLE_RANK WORLD_SIZE=$ROLE_WORLD_SIZE
         [ $ROLE_NAME = trainer ] || exec ranktrain evaluate --model-dir=saved --max-steps=4 --eval-freq=4 >evaluated
         exec ranktrain --steps=4 --checkpoint-every=4 --checkpoint-dir=saved --log-every=0 >>trained' 2>>said &
    agents+=($!)
done
for agent in "${agents[@]}"; do wait "$agent" || fail "an agent: exit $?"; done
[ "$(cut -d, -f1 told | sort)" = "reader 0 of 1
$(printf 'trainer %d of 6\n' 0 1 2 3 4 5)" ] || fail "roles: $(cat told)"
[ "$(sed 's/.*, \([0-9]*\) of 7, .*/\1/' told | sort)" = "$(seq 0 6)" ] || fail "ranks: $(cat told)"
grep -q '^reader.*, 1$' told && [ "$(grep -c '^trainer.*, 2$' told)" = 6 ] || fail "local worlds: $(cat told)"
grep -q '^world 6, ' trained && [ "$(grep '^model ' trained)" = "$(ranktrain --steps=4 --log-every=0 | grep '^model ')" ] ||
    fail "the trainers: $(cat trained)"
grep -q '^step 4 loss ' evaluated || fail "the reader: $(cat evaluated)"
