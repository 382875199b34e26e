#!/usr/bin/env bash
# S4 4.1, 4.2: a collective backend that is named at initialisation and set up from the environment (env://):
# --dist-backend, --dist-url, --seed. Four ranks end with the weights of one, another seed with others.
set -u
cd "$BIN" && PATH=$PWD:$PATH && cd "$TMPDIR" || exit 1
train() { # train OPTION...
    timeout 100 rankrun --standalone "${workers[@]}" ranktrain --dist-backend=tcp --steps=3 --log-every=0 \
        --dataset=generated "$@" 2>said | tail -n 1
}
hash_of() { grep -oE '[0-9a-f]{64}' <<<"$1"; }
workers=(--nproc_per_node=1)
one=$(train --dist-url=env:// --seed=7)
workers=(--nproc_per_node=4)
four=$(train --dist-url=env:// --seed=7)
other=$(train --seed=8)
if [ -z "$(hash_of "$one")" ] || [ "$(hash_of "$one")" != "$(hash_of "$four")" ] ||
    [ "$(hash_of "$other")" = "$(hash_of "$one")" ] || [ -z "$(hash_of "$other")" ]; then
    printf '%s\n' "one: $one" "four: $four" "another seed: $other"
    cat said
    exit 1
fi
ranktrain --dist-url=tcp://host:1 2>said
[ $? = 64 ] && grep -q -- '--dist-url=tcp://host:1: expected env://' said && exit 0
cat said
exit 1
