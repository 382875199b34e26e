#!/usr/bin/env bash
# The .deb in trees of Debian and Ubuntu as they come out of mmdebstrap: it is installed by apt with what it recommends, plays a
# scenario by its name and tries a stranger's script, and is removed without a trace. Measured: from the empty tree to the verdict
# of try, without what the network took. A release whose archive is not reached, or whose keys are not here, is passed over with
# the reason. DEB= names the package, by default the one that make package has built; TREES="bookworm trixie jammy noble".
# deadline: 2400 s
set -u
DEB=${DEB:-$PWD/build/package/rankquake_$(cat VERSION)_$(dpkg --print-architecture).deb}
[ "$(id -u)" = 0 ] || { echo 'a tree is bootstrapped by root'; exit 77; }
command -v mmdebstrap >/dev/null || { echo 'no mmdebstrap: apt install mmdebstrap ubuntu-keyring'; exit 77; }
[ -e "$DEB" ] || { echo "no $DEB: make package PACKAGES=deb"; exit 77; }
dir=$TMPDIR/trees
mkdir "$dir"
bad=0 tried=0
fail() {
    echo "$release: $*"
    tail -n 30 "$dir/said" | sed 's/^/    /'
    bad=1
}
ms() { echo $((${EPOCHREALTIME/./} / 1000)); }

# inside COMMAND...: in the tree, with mounts of its own that end with it.
inside() {
    TREE=$tree unshare --mount --pid --fork --kill-child --propagation private sh -c '
        mount -t proc proc "$TREE/proc" && mount --rbind /dev "$TREE/dev" && mount --rbind /sys "$TREE/sys" || exit 3
        exec chroot "$TREE" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
            RANKTRAIN_DATASET=generated "$@"' sh "$@" >"$dir/said" 2>&1 </dev/null
}

# Sets source to the release's line of apt; fails with the reason in why.
find_source() {
    local mirror parts=main keys= trust
    case $release in
    jammy | noble)
        mirror=${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu} parts='main universe' keys=/usr/share/keyrings/ubuntu-archive-keyring.gpg
        [ -e $keys ] || [ -n "${TRUSTED-}" ] || { why="no $keys: apt install ubuntu-keyring, or TRUSTED=1 to believe the archive"; return 1; }
        ;;
    *) mirror=$(ci/package/mirror) ;;
    esac
    [ -n "$mirror" ] || { why='no Debian mirror among the apt sources of this machine: MIRROR=URL'; return 1; }
    mirror=${mirror%/}
    trust=${keys:+[signed-by=$keys] }
    [ -z "$keys" ] || [ -e "$keys" ] || trust='[trusted=yes] '
    source="deb $trust$mirror $release $parts"
    timeout 60 curl -fsS -o /dev/null "$mirror/dists/$release/Release" >"$dir/said" 2>&1 || {
        why="$mirror is not reached: $(tail -n 1 "$dir/said")"
        return 1
    }
}

try_tree() {
    local begin fetched installed ended version
    mmdebstrap --quiet --variant=apt --aptopt='Acquire::Check-Valid-Until "false"' "$release" "$tree" "$source" >"$dir/said" 2>&1 ||
        { fail 'mmdebstrap failed'; return; }
    cp "$DEB" "$tree/root/rankquake.deb"
    cp tests/soak/package_job.py "$tree/root/train.py"
    cp /etc/resolv.conf /etc/hosts "$tree/etc/"
    inside apt-get -q -o Acquire::Check-Valid-Until=false update || { fail 'apt cannot read the lists'; return; }
    inside apt-get -q -y -o APT::Keep-Downloaded-Packages=true --download-only install /root/rankquake.deb python3 || { fail 'apt cannot download what it needs'; return; }
    fetched=$(ms)
    inside apt-get -q -y install /root/rankquake.deb python3 || { fail 'apt cannot install it'; return; }
    installed=$(ms)
    inside sh -c 'cd /root && exec rankquake try --out runs -- rankrun --nnodes 2 --nproc-per-node 1 train.py'
    rc=$?
    ended=$(ms)
    cp "$dir/said" "$dir/try-$release"
    grep -q 'control run' "$dir/said" && [ $rc -le 2 ] || { fail "try of a stranger's script: exit $rc"; return; }
    ls "$tree"/root/runs/*/index.html "$tree"/root/runs/*/*/report.html >/dev/null 2>&1 || fail 'try has left no report'
    inside sh -c 'cd /root && exec rankquake run restart/worker-killed --out smoke' || fail "run restart/worker-killed: exit $?"
    inside sh -c 'rankquake lint smoke tour && rankrun --version && man -w rankquake-run 2>/dev/null; test -s /usr/share/man/man1/rankquake-run.1.gz ||
        grep -rq path-exclude.*man /etc/dpkg' || fail 'no scenarios or no manual page'
    version=$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' "$tree/etc/os-release")
    inside apt-get -q -y purge rankquake || fail 'apt cannot remove it'
    find "$tree/usr" "$tree/etc" -path '*rankquake*' >"$dir/said"
    [ ! -s "$dir/said" ] || fail 'removed, and something is left'
    tried=$((tried + 1))
    printf '%-28s install %5d ms, try %6d ms (exit %d), together %6d ms\n' "$version" $((installed - fetched)) $((ended - installed)) "$rc" $((ended - fetched))
}

for release in ${TREES:-bookworm trixie jammy noble}; do
    tree=$dir/$release why=
    if find_source; then try_tree; else echo "$release: passed over: $why"; fi
    rm -rf --one-file-system "$tree"
done
[ $bad = 0 ] || exit 1
[ $tried -gt 0 ] || { echo "no release was reached: $why"; exit 77; }
