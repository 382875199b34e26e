#!/usr/bin/env bash
# What a job may do to the host of its node, as root and as an ordinary user: nothing to its system, kernel,
# disks, clock and cgroups, unless the scenario says that it keeps all rights; a kill of everybody ends its
# node, and nobody else; a cgroup that it leaves behind is told; a plan says what remains.
# deadline: 180 s
# alone: it makes cgroups, and a run beside it tells of those
set -u
tries=$(realpath "${OUT:-build/release}/tests/live/spawn_rights")
bin=$(realpath "$BIN")
dir=$TMPDIR/rights
mkdir -p "$dir/desk" && cp "$tries" "$dir/desk" && cp -R "$bin" "$dir/bin" || exit 1
chmod a+x "$TMPDIR"
chmod -R a+rwX "$dir"
cd "$dir/desk" || exit 1
export XDG_CACHE_HOME=$dir
bad=0
fail() {
    echo "$*"
    [ -e said ] && tail -n 30 said
    bad=1
}
users=$(id -u)
[ "$users" = 0 ] && users='0 65534'
as() { # as USER COMMAND...
    local user=$1
    shift
    if [ "$user" = "$(id -u)" ]; then "$@"; else setpriv --reuid="$user" --regid="$user" --clear-groups "$@"; fi
}
# play USER SCENARIO WORD...: what the job printed is in `told`, what the harness said in `said`.
play() {
    local user=$1 scenario=$2
    shift 2
    rm -rf out told said
    as "$user" "$dir/bin/rankquake" run "$scenario" --out out "$@" >said 2>&1
    local rc=$?
    cat out/*/logs/n0/*.log >told 2>/dev/null
    return $rc
}
cat >try.yaml <<END
cluster: {nodes: 1, store: none}
job: {max_restarts: 0, run: ["$dir/desk/spawn_rights"]}
END

# ---- in namespaces ----

never='write-etc write-usr write-sysctl write-sysctl-nested write-sys-nested write-sysrq write-sys read-disk read-log make-device
    mount unseal load-module set-clock open-by-handle trace-first make-cgroup'
if as "${users##* }" "$dir/bin/rankquake" doctor 2>&1 | grep -q '^isolation: processes'; then
    users=${users%% *}
fi
for user in $users; do
    play "$user" try.yaml --isolation namespaces
    rc=$?
    [ $rc = 4 ] && [ "$user" != 0 ] && continue # refused to ordinary users here
    [ $rc = 0 ] || fail "user $user: exit $rc"
    for what in $never; do
        ! grep -qx "may $what" told || fail "user $user: a job may $what"
    done
    always='here null terminal low-port trace-child'
    [ "$user" = 0 ] && always+=' chown setuid'
    for what in $always; do
        grep -qx "may $what" told || fail "user $user: a job may not $what"
    done
done

if [ "$(id -u)" = 0 ] && "$dir/bin/rankquake" doctor 2>&1 | grep -q '^isolation: namespaces'; then
    play 0 try.yaml --isolation namespaces --set cluster.privileged=true || fail "privileged: exit $?"
    for what in write-sysctl make-device mount; do
        grep -qx "may $what" told || fail "privileged: a job may not $what"
    done

    # A question that is asked in a node has no more rights than its job.
    cat >ask.yaml <<END
cluster: {nodes: 1, store: none}
job: {run: [sleep, "1"]}
probe:
  etc: {cmd: ["$dir/desk/spawn_rights", write-etc], on: n0, every: 200ms}
expect: {probe: {etc: always}}
END
    play 0 ask.yaml --isolation namespaces
    grep -q 'may not write-etc' out/*/history.jsonl && ! grep -q 'may write-etc' out/*/history.jsonl ||
        fail 'a probe may write to /etc'

    # The caller's directory is the job's to write, wherever it lies.
    mkdir "$dir/usr-src" && (cd "$dir" && cat >in-usr.sh <<END
mount --bind "$dir/usr-src" /usr/src && mkdir -p /usr/src/app && cd /usr/src/app || exit 77
cp "$dir/desk/try.yaml" . && "$dir/bin/rankquake" run try.yaml --out "$dir/desk/out" --isolation namespaces
END
    ) || exit 1
    rm -rf out
    if [ -d /usr/src ] && command -v unshare >/dev/null; then
        unshare --mount sh "$dir/in-usr.sh" >said 2>&1 || fail "in /usr/src: exit $?"
        cat out/*/logs/n0/*.log >told
        grep -qx 'may here' told || fail 'a job may not write to its directory in /usr'
        grep -qx 'may not write-usr' told || fail 'a job in /usr may write to all of it'
    fi
fi

# ---- as processes: a signal to everybody ----

# In a namespace of processes of the test's own, so that "everybody" is nobody else.
cat >kill.yaml <<'END'
cluster: {nodes: 1, store: none, isolation: processes}
job: {max_restarts: 0, run: [sh, -c, 'kill -9 -1; echo survived']}
END
cat >everybody.sh <<'END'
# everybody.sh DIR USER OUT: a bystander, and a run whose job kills all that it may
as=; [ "$2" = "$(id -u)" ] || as="setpriv --reuid=$2 --regid=$2 --clear-groups"
$as sleep 1000 &
bystander=$!
$as "$1/bin/rankquake" run kill.yaml --out "$3" >said 2>&1 &
wait $!
echo "harness $?"
kill -0 $bystander && echo 'bystander lives'
kill -9 $bystander
END
own_pids=(unshare --pid --fork --kill-child --mount-proc)
[ "$(id -u)" = 0 ] || own_pids+=(--user --map-root-user)
deep=$dir/desk/$(printf 'deep%.0s' {1..30})
if "${own_pids[@]}" true 2>/dev/null; then
    [ "$(id -u)" = 0 ] && users='0 65534' || users=0
    for user in $users; do
        for out in out "$deep"; do
            rm -rf "$out"
            "${own_pids[@]}" bash everybody.sh "$dir" "$user" "$out" >seen 2>&1
            grep -q 'bystander lives' seen || fail "user $user: a job killed a bystander: $(cat seen)"
            grep -Eq '^harness [0-5]$' seen || fail "user $user: a job killed its harness: $(cat seen)"
        done
    done
fi

# ---- a cgroup that stays ----

# In a cgroup of the test's own: what lies below one that is lived in is nobody else's, and no other run tells it.
unified=$(sed -n 's/^[^ ]* \([^ ]*\) cgroup2 .*/\1/p' /proc/self/mounts | head -n 1)
own=$unified$(sed -n 's/^0:://p' /proc/self/cgroup)
at=${own%/}/rights-of-$$
if [ -n "$unified" ] && mkdir "$at" 2>/dev/null && echo $$ 2>/dev/null >"$at/cgroup.procs"; then
    cat >cgroup.yaml <<END
cluster: {nodes: 1, store: none}
job: {max_restarts: 0, run: [mkdir, -p, "$at/rights-$$/below"]}
END
    clear_cgroups() { rmdir "$at/rights-$$/below" "$at/rights-$$" 2>/dev/null; }
    kinds=processes
    [ "$(id -u)" = 0 ] && kinds='namespaces processes'
    for kind in $kinds; do
        all=()
        [ "$kind" = namespaces ] && all=(--set cluster.privileged=true)
        play "$(id -u)" cgroup.yaml --isolation "$kind" "${all[@]}"
        rc=$?
        [ $rc = 3 ] || [ $rc = 5 ] || fail "$kind: exit $rc with a cgroup left behind"
        grep -q "the cgroup $at/rights-$$, made while the run went on, by launcher or job" said ||
            fail "$kind: a cgroup was left behind, and is not told"
        clear_cgroups || fail "$kind: there was no cgroup"
    done
    sed "s,rights-$$/below,rankquake-doctor-1," cgroup.yaml >doctor.yaml
    play "$(id -u)" doctor.yaml --isolation processes
    grep -q 'the cgroup .*made while' said && fail 'the cgroup of a doctor beside a run is told'
    rmdir "$at/rankquake-doctor-1" || fail 'there was no cgroup of a doctor'

    # Namespaces of a job's own give it a hierarchy that can be written to, and no secret.
    if [ "$(id -u)" = 0 ] && unshare --user --map-root-user --mount --cgroup \
        sh -c 'mount -t cgroup2 none /mnt' 2>/dev/null; then
        cat >nested.yaml <<END
cluster: {nodes: 1, store: none, isolation: namespaces}
job:
  max_restarts: 0
  run: [unshare, --user, --map-root-user, --mount, --cgroup,
        sh, -c, "mount -t cgroup2 none /mnt && mkdir -p /mnt/rights-$$"]
END
        play 0 nested.yaml
        grep -q "the cgroup /.*/rights-$$, made" said ||
            fail 'a cgroup that was made in a user namespace is not told'
        rmdir $(sed -n 's/.*the cgroup \(.*\), made.*/\1/p' said | head -n 1)
    fi

    # One that a process was seen in is the run's without doubt. A launcher that ends nobody leaves it one.
    cat >lived.yaml <<END
cluster: {nodes: 1, store: none}
launcher: [sh, -c, 'setsid sleep 100 & mkdir $at/rights-$$ && echo \$! >$at/rights-$$/cgroup.procs; exec {worker}']
job: {run: [sleep, "1"]}
END
    play "$(id -u)" lived.yaml --isolation processes
    if [ -d "$at/rights-$$" ]; then
        fail 'an empty cgroup that a process of the node lived in has stayed'
        clear_cgroups
    fi
    grep -q "\"cgroups\":\[\"$at/rights-$$\"\]" out/*/history.jsonl out/*/control/history.jsonl 2>/dev/null ||
        fail 'the cgroup of a process that was left is not counted'
    echo $$ >"$own/cgroup.procs"
    rmdir "$at" || fail "$at has stayed"
else
    echo 'no cgroup can be made here'
fi

# ---- what a plan says of it ----

plan() { "$dir/bin/rankquake" plan try.yaml "$@" >said 2>&1; }
plan --set cluster.isolation=processes
grep -q 'as processes among those of this host' said && grep -q 'by every user of this host' said ||
    fail 'the plan does not say what processes leave open'
plan --set cluster.privileged=true
grep -q 'keeps all your rights' said || fail 'the plan does not say that all rights are kept'
if [ "$(id -u)" = 0 ] && plan --set cluster.isolation=namespaces; then
    grep -q 'writes to all but /etc' said || fail 'the plan does not say which files root may write'
fi
! grep -q 'nothing else on this host is touched' said || fail 'the plan says that a job touches nothing'
exit $bad
