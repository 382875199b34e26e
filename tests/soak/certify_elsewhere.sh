#!/usr/bin/env bash
# A certificate is judged again where nothing of the place it was made in is: the tree is cloned and built in a directory of its
# own, the certificate alone is carried there, the first tree and the first directory are hidden, and `certify verify` comes to
# the same verdicts. One changed byte is refused there as well.
# deadline: 3600 s
set -u
cd "$(dirname "$0")/../.." || exit 1
for tool in git ssh-keygen unshare; do command -v $tool >/dev/null || { echo "no $tool here"; exit 77; }; done
git rev-parse --verify -q HEAD >/dev/null || { echo 'no git repository here to clone from'; exit 77; }
unshare -m true 2>/dev/null || { echo 'this host grants no mounts of its own'; exit 77; }
tree=$PWD dir=$TMPDIR/first there=$TMPDIR/there
rq=$(cd "$BIN" && pwd)/rankquake
mkdir "$dir" "$there"
export RANKQUAKE_LOCK=$dir/lock
fail() { echo "certify_elsewhere: $*"; exit 1; }

ssh-keygen -q -t ed25519 -N '' -C '' -f "$dir/key" && echo "ops@example $(cat "$dir/key.pub")" >"$there/signers" || fail 'no key'
"$rq" certify quick --allow node --key "$dir/key" --operator ops@example --yes --quiet --out "$dir/out" --without leftovers >"$dir/said" 2>&1
code=$?
"$rq" certify verify "$dir"/out/* --signers "$there/signers" >"$dir/verified" 2>&1
[ $? = $code ] && grep -qE 'judged +8 runs again, with the same verdicts' "$dir/verified" || fail "here: $(cat "$dir/said" "$dir/verified")"
mv "$dir"/out/* "$there/certificate"

git clone -q "$tree" "$there/tree" || fail 'no clone'
make -s -C "$there/tree" -j"$(nproc)" all >"$dir/built" 2>&1 || fail "the clone does not build: $(tail -n 20 "$dir/built")"
again=$there/tree/build/bin/rankquake
judge() { # judge OUTPUT: without the first tree, its programs, and what was made there
    unshare -m sh -c 'mount -t tmpfs none "$1" && mount -t tmpfs none "$2" && cd "$3" && exec "$4" certify verify certificate --signers signers' \
        judge "$tree" "$dir" "$there" "$again" >"$1" 2>&1
}
judge "$there/verified"
rc=$?
[ $rc = $code ] && cmp "$dir/verified" "$there/verified" || fail "elsewhere: exit $rc, here $code: $(diff "$dir/verified" "$there/verified")"
printf x >>"$there/certificate/acts.jsonl"
judge "$there/changed"
rc=$?
[ $rc = 11 ] && grep -q 'acts.jsonl was changed' "$there/changed" || fail "a changed byte: exit $rc: $(cat "$there/changed")"
echo "certify_elsewhere: exit $code and the same verdicts in a clone of $(git rev-parse --short HEAD), load $(cut -d' ' -f1 /proc/loadavg)"
