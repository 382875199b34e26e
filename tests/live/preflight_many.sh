#!/usr/bin/env bash
# Many hosts are asked at the same time. One whose packets go nowhere is named by everybody, and holds nobody up: what the
# others do with each other is measured all the same.
# deadline: 420 s
set -u
dir=$TMPDIR/preflight bed=$TMPDIR/bed n=24
mkdir "$dir"
. tests/live/says.bash
rq=$(cd "$BIN" && pwd)/rankquake
hosts=$(seq -s, -f 'n%g' 0 $((n - 1)))

tests/clusters/ssh up "$bed" $n >"$dir/said" 2>&1
rc=$?
[ $rc != 77 ] || { tail -n 1 "$dir/said"; exit 77; }
[ $rc = 0 ] || { fail 'the hosts did not come up'; exit 1; }
trap 'tests/clusters/ssh down "$bed"' EXIT
mkdir "$bed/shared"
ask() { # ask CODE PATTERN WHAT OPTION...: by the namespaces of the hosts
    says "$1" "$2" "$3" "$rq" preflight --hosts "$hosts" --via "tests/clusters/ssh in $bed {host} $rq" "${@:4}"
}
judge() { # judge PROGRAM WHAT: of what was said as JSON
    python3 -c "import json,sys; p={x['name']: x for x in json.load(open(sys.argv[1]))}
$1" "$dir/said" || fail "$2"
}

ask 0 "reach +all $((n * (n - 1))) ways between $n hosts" 'all is well' --shared "$bed/shared" --ports 29400 --probe reach --probe shared \
    --probe allreduce --probe clock
grep -q "shared .*read by all others within" "$dir/said" || fail 'not shared'
grep -qE 'clock .* \([0-9]+\.[0-9]+ s\)$' "$dir/said" || fail 'not in which time'
[ -z "$(ls -A "$bed/shared")" ] || fail 'tokens are left'

# n5 sends all that it sends to a card that nobody has.
# shellcheck disable=SC2016
tests/clusters/ssh in "$bed" n5 sh -c 'for i in $(seq 1 24); do [ "$i" = 6 ] || ip neigh replace 10.77.0.$i lladdr 02:00:00:00:00:01 dev eth0 nud permanent; done'
ask 1 '"reach"' 'a host is cut off' --probe reach --probe bandwidth --format json
judge "
f = p['reach']['figures']
assert all({x['host'] for x in f[h]} == {'n5'} for h in f if h != 'n5'), f
assert len(f) == $n and len(f['n5']) == $n - 1, f['n5']" 'who does not reach whom'
judge "
f, seen = p['bandwidth']['figures'], p['bandwidth']['seen']
assert f['rounds'] == $n - 1, f['rounds']
assert 'n5: left out of what follows, after 2 failures' in seen, seen
assert seen.count('left out') == 1, seen
assert all((f['n%d' % i]['kb_s'] > 0) == (i != 5) for i in range($n)), f" 'what the others have'

# A host that stands still is silent once for all, and nobody is blamed in its place.
# shellcheck disable=SC2016
cat >"$dir/via" <<END
#!/usr/bin/env bash
[ "\$1" != n7 ] || exec sleep 1000
exec tests/clusters/ssh in $bed "\$1" $rq "\${@:2}"
END
chmod +x "$dir/via"
says 1 'clock +n7: no answer in time \(' 'a host hangs' "$rq" preflight --hosts n6,n7,n8 --via "$dir/via {host}" --probe clock --probe limits
grep -qE 'limits +n7: no answer in time \(' "$dir/said" || fail 'limits are of another'
exit $bad
