#!/usr/bin/env bash
# All that depends on the etcd, over every etcd that is at hand: the scripts below are run with each of them in front of
# PATH, and a table says which version passed what. ETCDS='DIR DIR ...' names the folders, each with an etcd and an
# etcdctl; without, they are those of PATH, and where these are one version there is nothing to be told: the scripts run
# by themselves then. `bash tests/soak/etcd-versions.sh away legacy` runs those whose names contain one of the words.
#
# Other versions come from other releases of a distribution: etcd-server and etcd-client of Debian or Ubuntu are two
# programs in a package each, and `dpkg -x etcd-server_3.3.25*.deb DIR` leaves them in DIR/usr/bin without installing
# anything.
# deadline: 10800 s
set -u
tests=(
    'live/store-etcd|transactions, leases, watches, compaction: the contract of a store'
    'soak/seeds-etcd|a job with late joiners, restarts, a node that leaves and one that dies'
    'live/store-etcd-members|three members, the leader lost twice in mid-round, once compacted'
    'live/store-etcd-tls|https, client certificates, users, their tokens taken back'
    'soak/store-etcd-away|compacted while away, back with and without its data, asks for a user, is full'
    'live/store-etcd-own|`--standalone` with an etcd of its own, `etcd-v3` and `etcd`'
    'live/legacy|torchelastic'\''s protocol (API v2), rankrun alone'
    'soak/legacy-etcd|the same, while etcd is away and back with and without its data'
    'seeds/etcd|the same, by the lines of the manual'
    'soak/legacy-mixed|the same, with torchrun'\''s agents in the job'
    'live/etcd|`cluster: {store: etcd}` and `etcd-3` of a scenario'
)
read -r -a folders <<<"${ETCDS-}"
if [ ${#folders[@]} = 0 ]; then
    mapfile -t folders < <(type -aP etcd | xargs -r -n 1 dirname)
fi

# What an etcd of before 3.4 does not know only saves time: its passwords take a tenth of a second of a processor.
make_shim() { # make_shim DIR ETCD: DIR/etcd
    cat >"$1/etcd" <<SHIM
#!/usr/bin/env bash
words=()
while [ \$# -gt 0 ]; do
    case \$1 in
    --unsafe-no-fsync) ;;
    --bcrypt-cost) shift ;;
    *) words+=("\$1") ;;
    esac
    shift
done
exec '$2' "\${words[@]}"
SHIM
    chmod +x "$1/etcd"
}

# Sets versions, and paths: of each a folder with its programs, to be put in front of PATH.
versions=() paths=()
for folder in "${folders[@]}"; do
    etcd=$(realpath -e "$folder/etcd" 2>/dev/null) || { echo "ETCDS: no etcd in $folder" && exit 64; }
    version=$("$etcd" --version | sed -n 's/^etcd Version: //p')
    [ -n "$version" ] || { echo "$etcd --version does not say what it is" && exit 64; }
    [[ " ${versions[*]-} " == *" $version "* ]] && continue
    path=$TMPDIR/etcd-$version
    mkdir "$path" || exit 1
    case $version in
    2.* | 3.[0-3].*) make_shim "$path" "$etcd" ;;
    *) ln -s "$etcd" "$path/" ;;
    esac
    [ ! -x "$folder/etcdctl" ] || ln -s "$(realpath "$folder/etcdctl")" "$path/"
    versions+=("$version") paths+=("$path")
done
if [ -z "${ETCDS-}" ] && [ ${#versions[@]} -lt 2 ]; then
    echo "no more than one etcd in PATH (${versions[*]-none}), which the other tests take: ETCDS='DIR DIR ...' names others"
    exit 77
fi

logs=$(realpath "$OUT")/etcd-versions
rm -rf "$logs" && mkdir -p "$logs" || exit 1
bad=0
# one VERSION PATH SCRIPT: sets result
one() {
    local log=$logs/$1-${3//\//.}.log script=tests/$3.sh begin=$SECONDS limit rc
    limit=$(sed -n 's/^# deadline: \([0-9]*\) s$/\1/p' "$script")
    rm -rf "$TMPDIR/run" && mkdir "$TMPDIR/run"
    if [ -L "$2/etcd" ]; then unset JOIN_TIMEOUT; else export JOIN_TIMEOUT=5s; fi
    PATH=$2:$PATH TMPDIR=$TMPDIR/run TRIALS=${TRIALS:-1} ETCDCTL_API=3 \
        timeout --kill-after=10 "${limit:-240}" bash "$script" >"$log" 2>&1 </dev/null
    rc=$?
    case $rc in
    0) result=yes ;;
    77) result="skipped: $(tail -n 1 "$log")" ;;
    *)
        result=NO bad=1
        tail -n 30 "$log" | sed 's/^/    | /'
        ;;
    esac
    echo "$1 $3: $result ($rc, $((SECONDS - begin)) s)"
}

table=("| over etcd ... | $(printf '%s | ' "${versions[@]}")" "|---|$(printf -- '---|%.0s' "${versions[@]}")")
for test in "${tests[@]}"; do
    script=${test%%|*} row="| ${test#*|} (\`$script.sh\`) |"
    [ $# = 0 ] || grep -qF "${@/#/-e}" <<<"$script" || continue
    for i in "${!versions[@]}"; do
        result='from 3.4 on' # a node's own is told how to log
        [ "$script" = live/etcd ] && [ ! -L "${paths[i]}/etcd" ] || one "${versions[i]}" "${paths[i]}" "$script"
        row+=" $result |"
    done
    table+=("$row")
done
printf '%s\n' '' "${table[@]}"
exit $bad
