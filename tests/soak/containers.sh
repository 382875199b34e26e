#!/usr/bin/env bash
# Two containers train together and are broken through the exec provider, as `podman exec` reaches them: a worker and a whole node
# are killed at an exact step, and the clock of one is wrong. The containers have the host's root file system below, and this tree and one directory in common.
# Where limits cannot be raised, or control groups of both versions are mounted, podman is given no limits to set, none of its
# own control groups, and the second version alone.
# deadline: 600 s
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/live/pair.bash
command -v podman >/dev/null || { echo 'no podman here (Debian: podman)'; exit 77; }
if [ -z "${CONTAINERS_OWN-}" ]; then
    unshare -m true 2>/dev/null || { echo "this host grants no mounts of one's own"; exit 77; }
    CONTAINERS_OWN=1 exec unshare -m --propagation private bash "$0"
fi
dir=$TMPDIR/containers bin=$(cd "$BIN" && pwd) fails=0
mkdir -p "$dir/runs"
printf '[containers]\ndefault_ulimits = []\n' >"$dir/containers.conf"
export CONTAINERS_CONF=$dir/containers.conf
umount -l /sys/fs/cgroup 2>/dev/null
mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null || { echo 'this host grants no mount of cgroup2'; exit 77; }
pod() { podman --root "$dir/root" --runroot "$dir/runroot" "$@"; }
finish() { pod rm -f -t 0 c0 c1 >/dev/null 2>&1; }
trap finish EXIT
for name in c0 c1; do
    pod run -d --name $name --cgroups=disabled --network=host -v "$PWD:$PWD:ro" -v "$bin:$bin:ro" -v "$dir:$dir" --rootfs /:O sleep infinity >"$dir/up" 2>&1 ||
        { echo "podman runs no container here: $(tail -n 1 "$dir/up")"; exit 77; }
done
scenario() { # scenario NAME ENTRY
    { pair "$1" 40 "$2" && echo 'expect: {outcome: succeeded}'; } >"$dir/$1.yaml"
    printf 'podman --root %s --runroot %s exec -i %s %s/rankquake-node\n' "$dir/root" "$dir/runroot" c0 "$bin" "$dir/root" "$dir/runroot" c1 "$bin" >"$dir/hosts"
    "$bin/rankquake" run "$dir/$1.yaml" --provider exec --hostfile "$dir/hosts" --out "$dir/runs" >"$dir/said" 2>&1
    rc=$?
    [ $rc = 0 ] && grep -q '"kind":"fault-evidence"' "$dir"/runs/"$1"-*/history.jsonl || { echo "$1: exit $rc"; cat "$dir/said"; fails=1; }
}
scenario worker-killed '{id: f, when: {step: 25}, fault: worker-kill, on: n1/0}'
scenario node-killed '{id: f, when: {step: 25}, fault: node-kill, on: n1}'
scenario clock-jumped '{id: f, when: {step: 15}, fault: clock-jump, with: {by: -1h}, on: n1}'
exit $fails
