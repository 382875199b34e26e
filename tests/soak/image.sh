#!/usr/bin/env bash
# The image, made from an empty tree by ci/package/build, and on top of it that of a job whose entry point is rankrun
# (ci/examples/kubernetes/Containerfile): two containers of it train together by their entry point, and go on as one when the other
# is killed; then the exec provider breaks two of them, with the programs of the image on both sides.
# The provider is started in a directory that the containers have. IMAGE=FILE takes one that is there. Limits and control groups: containers.sh.
# deadline: 1800 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/pair.bash
for program in podman buildah mmdebstrap; do
    command -v $program >/dev/null || { echo "no $program here (Debian: $program)"; exit 77; }
done
if [ -z "${IMAGE_OWN-}" ]; then
    unshare -m true 2>/dev/null || { echo "this host grants no mounts of one's own"; exit 77; }
    IMAGE_OWN=1 exec unshare -m --propagation private bash "$0"
fi
version=$(cat VERSION) dir=$TMPDIR/image fails=0
image=${IMAGE:-build/package/rankquake-$version-linux-$(uname -m)-image.tar}
mkdir -p "$dir/runs" "$dir/ckpt" "$dir/storage"
fail() {
    echo "FAILED: $*"
    fails=1
}
[ -e "$image" ] || (unset BUILD OUT BIN && make package PACKAGES=image) >"$dir/made" 2>&1 || { tail -n 5 "$dir/made"; exit 77; }
printf '[containers]\ndefault_ulimits = []\n' >"$dir/containers.conf"
export CONTAINERS_CONF=$dir/containers.conf
umount -l /sys/fs/cgroup 2>/dev/null
mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null || { echo 'this host grants no mount of cgroup2'; exit 77; }
store=(--root "$dir/storage/root" --runroot "$dir/storage/run" --storage-driver vfs)
pod() { podman "${store[@]}" "$@"; }
finish() {
    pod rm -f -t 0 c0 c1 >/dev/null 2>&1
    exec 5<&-
}
trap finish EXIT
pod load -q -i "$image" >"$dir/said" 2>&1 || { fail "the image is not loaded: $(cat "$dir/said")"; exit 1; }
# What the job needs, as an operator adds it: ranktrain computes with OpenBLAS, which is this host's here.
mkdir "$dir/job" && blas=$(ldconfig -p | awk '/libopenblas.so.0 / { print $NF; exit }')
[ -n "$blas" ] || { echo 'no OpenBLAS here (Debian: libopenblas0-pthread)'; exit 77; }
cp -L "$blas" $(ldd "$blas" | awk '/libgfortran|libquadmath/ { print $3 }') "$dir/job/" || exit 1
printf 'ARG BASE\nFROM ${BASE}\nCOPY *.so.* /usr/local/lib/\nRUN ldconfig\n' >"$dir/job/Containerfile"
layer() { # layer BASE NAME FOLDER
    buildah "${store[@]}" bud -q --isolation chroot --build-arg BASE="localhost/$1" -t "$2" "$3" >"$dir/said" 2>&1 ||
        { fail "$2 is not made: $(cat "$dir/said")"; exit 1; }
}
layer "rankquake:$version" job:1 "$dir/job"
layer job:1 train:1 ci/examples/kubernetes
common=(--cgroups=disabled --network=host -v "$dir:$dir" -e RANKTRAIN_DATASET=generated)
pod run --rm "${common[@]}" train:1 --version >"$dir/said" 2>&1 || { echo "podman runs no container here: $(tail -n 1 "$dir/said")"; exit 77; }
grep -q "rankrun $version" "$dir/said" || fail "the entry point is not rankrun: $(cat "$dir/said")"

# By their entry point. Two agents on one network: each has an address of the loopback.
agent() { # agent NUMBER CHECKPOINTS STEPS [OPTION]: of podman's
    pod run ${4-} --name "c$1" --hostname "c$1" "${common[@]}" train:1 --nnodes 1:2 --nproc-per-node 1 --max-restarts 3 --rdzv-id train \
        --rdzv-endpoint 127.0.0.2:29400 --local-addr "127.0.0.$((2 + $1))" \
        --rdzv-conf hb=1s,fence=20s,hard=21s,suspect=23s ranktrain --steps="$3" --log-every=5 --compute-ms=10 --checkpoint-every=10 --collective-timeout=60 \
        --checkpoint-dir="$dir/$2"
}
mkdir "$dir/whole" "$dir/broken"
agent 0 whole 60 >"$dir/c0" 2>&1 &
first=$!
agent 1 whole 60 >"$dir/c1" 2>&1 &
wait $first && wait $! || fail "two containers do not train: $(tail -n 5 "$dir/c0" "$dir/c1")"
grep -q 'world 2, 2 nodes' "$dir/c0" "$dir/c1" || fail "they did not train together: $(cat "$dir/c0" "$dir/c1")"
pod rm -f -t 0 c0 c1 >/dev/null 2>&1

# The other container is killed when a step has been said, at once, by its first process; the first goes on alone, from the checkpoint.
# The steps are said by whoever has rank 0. Whoever comes first to an address of this network serves the store there: c0.
agent 0 broken 1500 -d >"$dir/c0" 2>&1 || { fail "a container is not up: $(cat "$dir/c0")"; exit 1; }
exec 5< <(exec podman "${store[@]}" logs -f c0 2>&1)
while read -r -t 180 -u 5 line && [[ $line != *'serving the store'* ]]; do :; done
agent 1 broken 1500 -d >"$dir/c1" 2>&1 && pid=$(pod inspect -f '{{.State.Pid}}' c1) && [ "$pid" -gt 1 ] ||
    { fail "two containers are not up: $(cat "$dir/c1")"; exit 1; }
exec 5< <({ pod logs -f c0 & pod logs -f c1 & wait; } 2>&1)
killed=
while read -r -t 180 -u 5 line; do
    echo "$line" >>"$dir/alone"
    case $line in 'step 20 '*) [ -n "$killed" ] || { killed=1; kill -KILL "$pid"; } ;; esac
done
rc=$(timeout 300 podman "${store[@]}" wait c0)
[ "$rc" = 0 ] && [ -n "$killed" ] && grep -q 'world 1, 1 node' "$dir/alone" || fail "one container was killed: exit $rc, $(tail -n 8 "$dir/alone")"
pod rm -f -t 0 c0 c1 >/dev/null 2>&1
# Broken through the exec provider. Programs lie at the same path on all hosts: those of the image here, too.
mkdir "$dir/beside" && cp -R "$(pod image mount train:1)/usr/lib/rankquake" "$dir/beside/" && pod image umount train:1 >/dev/null &&
    mount -t overlay overlay -o "lowerdir=$dir/beside:/usr/lib" /usr/lib || { echo 'this host grants no overlay'; exit 77; }
export RANKTRAIN_DATASET=generated
here=/usr/lib/rankquake/rankquake
for name in c0 c1; do
    pod run -d --name $name "${common[@]}" --entrypoint sleep train:1 infinity >"$dir/up" 2>&1 || fail "$name is not up: $(tail -n 1 "$dir/up")"
    printf 'podman %s exec -i %s /usr/lib/rankquake/rankquake-node\n' "${store[*]}" $name >>"$dir/hosts"
done
broken() { # broken NAME ENTRY
    { pair "$1" 40 "$2" && echo 'expect: {outcome: succeeded}'; } >"$dir/$1.yaml"
    (cd "$dir" && "$here" run "$1.yaml" --provider exec --hostfile "$dir/hosts" --out "$dir/runs") >"$dir/said" 2>&1
    local rc=$?
    [ $rc = 0 ] && grep -q '"kind":"fault-evidence"' "$dir"/runs/"$1"-*/history.jsonl || fail "$1: exit $rc: $(cat "$dir/said")"
}
broken worker-killed '{id: f, when: {step: 25}, fault: worker-kill, on: n1/0}'
broken node-killed '{id: f, when: {step: 25}, fault: node-kill, on: n1}'
exit $fails
