#!/usr/bin/env bash
# S4: the manual's lines as they stand, with its program's options and positional directory: for a list of hosts, and without
# one for this host. A backend that is named at initialisation and set up from the environment (env://); data split by hand and
# gradients summed by calls, or the wrapper. Four ranks end with the weights of one, another seed with others.
# deadline: 60 s
set -u
if [ "${1-}" != inside ]; then # host1 and host2 are this machine, by a hosts file of their own; tests/seeds/hosts.sh has real ones
    unshare -Urm true 2>/dev/null || { echo 'no mount namespace of its own here: nobody is called host1'; exit 77; }
    BIN=$(cd "$BIN" && pwd) exec unshare -Urm bash "$0" inside
fi
PATH=$BIN:$PATH
cd "$TMPDIR" || exit 1
printf '127.0.0.1 localhost\n127.0.0.1 host1\n127.0.0.2 host2\n' >names && mount --bind names /etc/hosts || exit 77
train() { # train OPTION...
    timeout 300 rankrun --standalone "${workers[@]}" ranktrain --dist-backend=tcp --steps=3 --log-every=0 \
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
[ $? = 64 ] && grep -q -- '--dist-url=tcp://host:1: expected env://' said || { cat said; exit 1; }

seed=(--dist-backend ddl --seed 1234 --dist-url env://)
more=(--dataset=generated --samples=96 --epochs=1 --log-every=0)
last=''
line() { # line WHAT WORKERS COMMAND...
    timeout 300 "${@:3}" >out 2>said || { echo "$1: exit $?"; cat out said; exit 1; }
    grep -q "world $2, " out said && hash=$(hash_of "$(cat out)") && [ "$hash" = "${last:=$hash}" ] ||
        { echo "$1: $hash, not $last"; cat out said; exit 1; }
}
line 'without hosts' 4 rankrun --accelerators 4 ranktrain "${seed[@]}" "${more[@]}"
line 'two hosts' 8 rankrun -H host1,host2 --accelerators 4 ranktrain "${seed[@]}" "${more[@]}"
line 'by hand' 8 rankrun -H host1,host2 --accelerators 4 ranktrain --mode=manual "${seed[@]}" "${more[@]}"
grep -q '^.host1. ' out && exit 0
cat out said
exit 1
