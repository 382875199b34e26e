#!/usr/bin/env bash
# Nodes with a root file system of their own: a tiny tree, in which a worker sees the tree and not the host,
# finds its directory, writes where it likes and changes nothing; as root and as an ordinary user.
# deadline: 120 s
set -u
rq=$(realpath "$BIN/rankquake")
dir=$TMPDIR/rootfs tree=$TMPDIR/rootfs/tree
mkdir -p "$dir/desk" "$tree"/{bin,etc,home,usr/only} || exit 1
bad=0

fail() {
    echo "$*"
    cat "$dir/said"
    bad=1
}

# Some programs of this host with what they load, and nothing of ours.
programs=$(type -P bash cat ls mkdir readlink)
for file in $programs; do
    cp -L "$file" "$tree/bin/" || exit 1
    for library in $(ldd "$file" 2>/dev/null | grep -o '/[^ ]*'); do
        mkdir -p "$tree${library%/*}" && cp -Ln "$library" "$tree$library"
    done
done
if [ ! -s "$tree/bin/bash" ] || ! ldd "$(type -P bash)" >/dev/null; then
    echo 'no tree can be made here: there is no ldd'
    exit 77
fi
mv "$tree/bin/bash" "$tree/bin/inside"
ln -s inside "$tree/bin/sh"
ln -s /nowhere/hosts "$tree/etc/hosts"
find "$tree" -printf '%p %s %T@\n' | sort >"$dir/before"

cat >"$dir/desk/look.sh" <<'END'
#!/bin/inside
# Lines that begin with "wrong" are told by the test.
[ -e /usr/share ] && echo "wrong: the host's /usr/share is seen"
[ -d /usr/only ] || echo "wrong: the tree is not seen"
[ "$HOSTNAME" = n0 ] || [ "$HOSTNAME" = n1 ] || echo "wrong: host name $HOSTNAME"
hosts=$(cat /etc/hosts)
[[ $hosts == *"198.18.0.10 n0"* ]] || echo "wrong: /etc/hosts is $hosts"
[ "$PWD" = "$WORK" ] && [ -e look.sh ] || echo "wrong: I am in $PWD"
mkdir /new || echo "wrong: / cannot be written"
if [ "$MINE" = yes ]; then
    echo changed >/etc/made && echo changed >/bin/ls || echo "wrong: the tree cannot be written"
fi
[ -e /dev/null ] && [ -e /proc/self/status ] && [ -d /sys ] || echo "wrong: no /dev, /proc or /sys"
[ -z "$(ls -A /dev/shm)" ] && [ -d "$HOME" ] || echo "wrong: /dev/shm or no home"
# The C library, and who knows names: of the host, seen in the tree.
for file in /run/rankquake/lib/* /etc/resolv.conf; do
    [ -s "$file" ] && { : >>"$file"; } 2>/dev/null && echo "wrong: the host's file $file can be written"
done
[ -e /.rankquake-host ] && echo "wrong: the host's root is seen"
echo "rank $RANK of $WORLD_SIZE" >"$SHARED/rank-$RANK"
echo "looked $RANDOM"
END
chmod +x "$dir/desk/look.sh"
cat >"$dir/desk/s.yaml" <<END
scenario: rooted
cluster: {nodes: 2, rootfs: $tree}
job:
  nnodes: 2
  env: {WORK: $dir/desk, SHARED: "{shared}", HOME: /home/nobody}
  run: [./look.sh]
END

as_user() { # as_user USER COMMAND...
    local user=$1
    shift
    if [ "$user" = 0 ]; then "$@"; else setpriv --reuid="$user" --regid="$user" --clear-groups "$@"; fi
}

# Root, an ordinary user in root's tree, and one in a tree of her own; whoever is no root is only herself.
tried=0
turns='0:0 1000:0 1000:1000'
[ "$(id -u)" = 0 ] || turns=$(id -u):$(id -u)
for turn in $turns; do
    user=${turn%:*} MINE=no
    [ "${turn%:*}" = "${turn#*:}" ] && MINE=yes
    if [ "$user" != 0 ] && [ "$(id -u)" = 0 ]; then
        if ! as_user "$user" test -x "$rq"; then
            echo "an ordinary user cannot reach $rq: not tried as one"
            continue
        fi
        chown -Rh "$user:$user" "$dir/desk" && chmod 755 "$TMPDIR" "$dir"
        [ $MINE = no ] || chown -Rh "$user:$user" "$tree"
    fi
    (cd "$dir/desk" && HOME=/home/nobody MINE=$MINE XDG_CACHE_HOME=$dir/desk/cache-$user as_user "$user" \
        timeout 300 "$rq" run s.yaml --out "out-$user" --keep) >"$dir/said" 2>&1 </dev/null
    rc=$?
    if [ $rc = 4 ]; then
        tail -n 1 "$dir/said"
        continue
    fi
    [ $rc = 0 ] || fail "uid $turn: exit $rc, wanted 0"
    tried=1
    cat "$dir/desk/out-$user"/*/logs/n?/agent.log >"$dir/said" 2>/dev/null
    grep -q wrong "$dir/said" && fail "uid $turn: a worker saw:"
    [ "$(grep -c looked "$dir/said")" = 2 ] || fail "uid $turn: not both workers looked:"
    cat "$dir/desk/out-$user"/*/scratch/shared/rank-1 2>/dev/null | grep -qx 'rank 1 of 2' ||
        fail "uid $turn: what a worker wrote into {shared} is not there"
    rm -rf "$dir/desk/out-$user"
done

grep -F "$dir" /proc/self/mounts >"$dir/said" && fail 'mounts are left on the host'
find "$tree" -printf '%p %s %T@\n' | sort >"$dir/after"
cmp -s "$dir/before" "$dir/after" || fail "the tree was changed: $(diff "$dir/before" "$dir/after" | head -n 3)"

refused() { # refused TEXT OPTION...
    local text=$1
    shift
    (cd "$dir/desk" && timeout 300 "$rq" run s.yaml --out "$dir/out" "$@") >"$dir/said" 2>&1 </dev/null
    local rc=$?
    [ $rc = 64 ] || fail "$*: exit $rc, wanted 64"
    grep -qF -- "$text" "$dir/said" || fail "$*: it did not say: $text"
    [ -e "$dir/out" ] && fail "$*: it made a run directory"
}
refused "job.run: /bin/bash exists on this host, but not in the nodes, whose root" --set 'job.run=[/bin/bash]'
refused "in the root file system of the nodes, $tree" --set 'job.run=[bash, -c, ls]'
refused 'exists on this host, but not in the nodes' --set 'job.run=[./look.sh, --data=/etc/passwd]'
refused 'rootfs: /nowhere: No such file' --rootfs /nowhere
refused "is this host's own" --rootfs /

[ $bad = 0 ] && [ $tried = 0 ] && exit 77
exit $bad
