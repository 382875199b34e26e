#!/usr/bin/env bash
# crashpoints finds nothing in a job that saves well, and in one that has a mistake that mistake, by the smallest sequence of
# operations and in words: by the FUSE disk, by system calls, as another user, on processes. What it cannot do it says, and
# killed in the middle it leaves nothing.
# deadline: 600 s
set -u
dir=$TMPDIR/crashpoints
mkdir "$dir" && cp -R "$(realpath "$BIN")" "$dir/bin" && cp "$OUT/tests/harness/crash/spawn_saver" "$dir/saver" && cp "$OUT/tests/live/spawn_refused" "$dir/refused" && cp "$OUT/tests/harness/crash/spawn_sees" "$dir/sees" || exit 1
chmod a+x "$TMPDIR" && chmod -R a+rX "$dir" || exit 1
[ ! -x "$OUT/tests/harness/crash/saver-static" ] || cp "$OUT/tests/harness/crash/saver-static" "$dir/" || exit 1
. tests/live/says.bash
export NO_COLOR=1 XDG_CACHE_HOME=$TMPDIR/cache
rq=$dir/bin/rankquake
mkdir -m 1777 "$dir/desk" && cd "$dir/desk" || exit 1

"$rq" crashpoints --max-states 1 -- ../saver '{dir}' good >"$dir/said" 2>&1
[ $? = 4 ] && { tail -n 1 "$dir/said"; exit 77; }

says_too() { # says_too WHAT PATTERN: the same output, lines joined
    tr -s '\n ' '  ' <"$dir/said" | grep -qE -- "$2" || fail "$1: did not say $2"
}

# ---- a program sees what is there, also where the kernel is told to believe what it knows ----
mkdir plain over && ../sees plain || fail 'without a disk a program sees something else'
"$rq" disk --over over --record "$dir/seen" -- ../sees over >"$dir/said" 2>&1 || fail 'through the disk a program sees something else'
diff -r plain over >"$dir/said" || fail 'through the disk another directory is left'
# Whatever is left of it when it has died, it is begun anew.
says 0 'recorded by system calls' 'by system calls a program sees what is there' \
    "$rq" crashpoints --record calls --max-states 1 --deaths process --dir ckpt -- sh -c '[ -d ckpt/done ] || { find ckpt -mindepth 1 -delete && ../sees ckpt && mkdir ckpt/done; }'

# ---- writers that die in the middle of their calls are waited for by nobody, and what they did is recorded ----
cat >dying.sh <<'END'
[ ! -e ckpt/all ] || exit 0
for i in 1 2 3 4 5 6 7 8 9 10; do
    while :; do echo $i >>ckpt/$i; done &
    until [ -s ckpt/$i ]; do :; done
    kill -9 $!
    wait $! 2>/dev/null
done
echo all >ckpt/all
END
for by in fuse calls; do
    says 0 'nothing was found' "writers that die, by $by" "$rq" crashpoints --record $by --max-states 1 --deaths process --result dying.sh --dir ckpt -- bash dying.sh
done

# ---- nothing is found ----
says 0 'nothing was found' 'a job that saves well' \
    "$rq" crashpoints --max-states 30 --junit junit.xml --dir ckpt -- ../saver ckpt good
grep -q '<testsuite .* failures="0"' junit.xml || fail 'junit.xml tells of failures'
[ ! -e ckpt ] || fail 'the directory was made for real'
says 0 'recorded by system calls' 'by system calls' \
    "$rq" crashpoints --record calls --max-states 10 --dir ckpt -- ../saver ckpt good
says 0 'nothing was found' 'on processes' \
    "$rq" crashpoints --isolation processes --max-states 10 -- ../saver '{dir}' good
[ -z "$(find runs -name 'stage-*')" ] || fail 'on processes: directories are left'

# ---- on processes what is recorded lies in memory, where there is enough ----
# Each in a /dev/shm of its own, into which nobody else puts anything.
cat >with_shm.sh <<'END'
mount -t tmpfs -o size=$1 tmpfs /dev/shm && shift || exit 1
"$@"
rc=$?
find /dev/shm -mindepth 1
exit $rc
END
# Where it is the job says, outside its directory.
cat >where.sh <<'END'
echo "$(stat -f -c %T "$1") $1 $(stat -c %a "$1/..")" >>where
[ "$2" != full ] || [ -e "$1/b" ] || head -c 8000000 /dev/zero >"$1/b" 2>/dev/null
[ "$2" != refuses ] || [ "$(stat -f -c %T "$1")" != tmpfs ] || { echo not in memory; exit 1; }
[ "$2" != renames ] || { echo new >new && mv new "$1/c"; }
echo done >"$1/a" || :
END
recorded() { # recorded WHAT SIZE CODE PATTERN WHERE N ARGUMENT...: WHERE: the first N lines of the file, an expression
    : >where
    says "$3" "$4" "$1" unshare -rm bash with_shm.sh "$2" "$rq" crashpoints --isolation processes --max-states 1 --deaths process "${@:7}"
    ! grep '^/dev/shm/' "$dir/said" || fail "$1: something is left in /dev/shm"
    head -n "$6" where | tr '\n' ' ' | grep -qE "^$5 \$" || {
        cat where
        fail "$1: it did not lie in $5"
    }
}
if unshare -rm mount -t tmpfs tmpfs /dev/shm 2>/dev/null && [ "$(stat -f -c %T .)" != tmpfs ]; then
    memory='tmpfs /dev/shm/rankquake-crashpoints-[0-9-]+/dir 700' disk="[^ ]+ $dir/desk/runs/[^ ]+/scratch/dir [0-7]+"
    recorded 'in memory' 64m 0 'nothing was found' "$memory" 1 --max-bytes 60000000 -- sh where.sh '{dir}' good
    ! grep 'not in memory' "$dir/said" || fail 'in memory: said that it is not'
    recorded 'a small /dev/shm' 64m 0 'lay on the disk, not in memory: /dev/shm has 67.1 MB left, and 1073.7' "$disk" 1 -- sh where.sh '{dir}' good
    recorded 'became full' 4m 2 'not in memory: /dev/shm became full, so it was started once more' "$memory $disk" 2 --max-bytes 4000000 -- sh where.sh '{dir}' full
    recorded 'refuses memory' 64m 0 'not in memory: the command failed there' "$memory $disk" 2 --max-bytes 60000000 -- sh where.sh '{dir}' refuses
    recorded 'renames from the disk' 64m 0 'not in memory: the command renames between' "$memory $disk" 2 --max-bytes 60000000 -- sh where.sh '{dir}' renames
    recorded 'fails by itself' 64m 3 'ended with exit code 1' "$memory $disk" 2 --max-bytes 60000000 -- sh -c 'sh where.sh "$0"; false' '{dir}'
fi

# ---- a job that tells nothing is parted by its pauses, and a disk that takes long for each sync makes none ----
says 0 'nothing was found' 'a job that tells nothing' "$rq" crashpoints --out quiet --max-states 1 --deaths process --dir ckpt -- ../saver ckpt good silent
parted() { # parted WORD SAVES: with 30 ms before each operation that has the word, and a microsecond before the others
    cp -R quiet/* "quiet-$1" && awk -v word="\"$1\"" '/"t_ns":/ { t += index($0, word) ? 30000000 : 1000; sub(/"t_ns":[0-9]+/, "\"t_ns\":" t) } { print }' quiet/*/record >"quiet-$1/record"
    says 0 "operations in $2 saves" "pauses before $1" "$rq" crashpoints --from "quiet-$1" --max-states 1 --deaths process --dir ckpt -- ../saver ckpt good silent
}
parted sync 1
parted mkdir 3

# ---- what is planted is found ----
finds() { # finds VARIANT VERDICT PATTERN [OPTION...]
    says 1 "^[0-9]+\. $2" "$1" "$rq" crashpoints --max-states 20 "${@:4}" --dir ckpt -- ../saver ckpt "$1"
    says_too "$1" "what .*$3"
}
finds torn-write 'silent divergence' 'after the truncate of rank-0.bin .* `rank-0.bin` is an empty file'
finds no-file-fsync 'hard failure' 'rename of latest.tmp to latest before fsync of step-2/rank-[01].bin'
says_too no-file-fsync 'it starts once latest is deleted'
finds no-directory-fsync 'lost work' '"checkpoint-commit 2" before fsync of the directory itself: after power loss `latest` is not there'
finds early-pointer 'hard failure' 'death after the rename of latest.tmp to latest'
finds rename-across 'hard failure' 'rename of (scratch/shard|latest.tmp)' --fs posix

# A mode, which comes with no bytes, by either record.
cat >mode.sh <<'END'
[ ! -e ckpt/run ] || [ -x ckpt/run ] || { echo it cannot be run; exit 1; }
echo a >ckpt/new; chmod 755 ckpt/new; mv ckpt/new ckpt/run
END
for by in fuse calls; do
    says 1 'hard failure' "a mode by $by" "$rq" crashpoints --record $by --deaths power --fs posix --max-states 12 --result mode.sh --dir ckpt -- sh mode.sh
    says_too "a mode by $by" 'before fsync of new: after power loss `run` has mode 644, not 755'
done
# The word that all is there holds from when it is given, though another save begins only later.
finds early-word 'lost work' 'death after the job.s word "checkpoint-commit 2" and before the create of latest.tmp: `latest` is not there' --deaths process
finds commit-before-peers 'hard failure' 'death after the rename of latest.tmp to latest' --deaths process

# The line that repeats a trial does, the state lies there, the page and JUnit have it.
repeat=$(sed -n 's/^ *repeat *rankquake //p' "$dir/said" | head -n 1)
run=$(sed 's/.*--from \([^ ]*\) .*/\1/' <<<"$repeat")
says 1 'hard failure' 'the line that repeats a trial' bash -c "'$rq' $repeat"
ls "$run"/states/*/latest >"$dir/said" 2>&1 || fail 'the state is not there to look at'
grep -q '<failure type="hard failure"' "$run/junit.xml" || fail 'junit.xml has no failure'
grep -q '<circle class="bad"' "$run/report.html" || fail 'the page has no bad point'
grep -q '"verdict":"hard failure"' "$run/trials.jsonl" || fail 'trials.jsonl has no bad trial'

# Nothing can be loaded into a program without a loader: by system calls the same is found.
if [ -x ../saver-static ]; then
    says 1 'hard failure' 'a static program' "$rq" crashpoints --record calls --max-states 20 --dir ckpt -- ../saver-static ckpt early-pointer
    says_too 'a static program' 'recorded by system calls'
    says_too 'a static program' 'what .*death after the rename of latest.tmp to latest'
    says 1 'hard failure' 'a static program on processes' "$rq" crashpoints --isolation processes --max-states 20 -- ../saver-static '{dir}' early-pointer
else
    echo 'a static program was not tried: there is no libc.a, or a sanitizer is in all programs'
fi

# ---- as another user ----
ordinary=()
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    ordinary=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    says 0 'nothing was found' 'an ordinary user' "${ordinary[@]}" \
        "$rq" crashpoints --max-states 10 --out "$dir/desk/theirs" --dir ckpt -- ../saver ckpt good
    says 0 'nothing was found' 'an ordinary user, on processes' "${ordinary[@]}" \
        "$rq" crashpoints --isolation processes --max-states 10 --out "$dir/desk/theirs" -- ../saver '{dir}' good
    says 1 'hard failure' 'an ordinary user, on processes, finds' "${ordinary[@]}" \
        "$rq" crashpoints --isolation processes --max-states 20 --out "$dir/desk/theirs" -- ../saver '{dir}' early-pointer
fi

# ---- what is wrong is said ----
says 64 'no command' 'no command' "$rq" crashpoints --dir ckpt
says 64 'name the directory' 'no directory' "$rq" crashpoints -- ../saver ckpt good
says 64 'one of them' 'two directories' "$rq" crashpoints --dir ckpt -- ../saver '{dir}' good
says 64 'process, kernel and power' 'a death that there is not' "$rq" crashpoints --deaths fire --dir ckpt -- true
says 64 'there is no file system' 'a file system that there is not' "$rq" crashpoints --fs fat --dir ckpt -- true
says 64 '--only takes --from' 'a trial of no run' "$rq" crashpoints --only 1/2 --dir ckpt -- true
says 64 'no directory nowhere' 'nothing to copy' "$rq" crashpoints --copy --dir nowhere -- true
says 64 '--dir /dev/null is no directory' 'a directory that is none' "$rq" crashpoints --dir /dev/null -- true
refused=$dir/refused
says 4 'nothing can be recorded here. By FUSE: it takes namespaces. By system calls: .*seccomp=unconfined' 'nothing records' \
    "$refused" namespaces,listener "$rq" crashpoints -- ../saver '{dir}' good
says 4 'here. By system calls: .*seccomp=unconfined' 'no calls' "$refused" listener "$rq" crashpoints --record calls --dir ckpt -- ../saver ckpt good
if unshare -rm true 2>/dev/null; then
    no_fuse='mount --bind /dev/fuse /dev/fuse && mount -o remount,bind,nodev /dev/fuse && exec "$@"'
    says 4 'By FUSE: .*/dev/fuse.* By system calls: .*seccomp=unconfined' 'neither' unshare -rm sh -c "$no_fuse" - \
        "$refused" listener "$rq" crashpoints --dir ckpt -- ../saver ckpt good
    says 0 'recorded by system calls' 'no FUSE' unshare -rm sh -c "$no_fuse" - \
        "$rq" crashpoints --max-states 1 --dir ckpt -- ../saver ckpt good
fi
says 64 '--result ckpt/nowhere: there is no such file' 'a result that there is not' \
    "$rq" crashpoints --result ckpt/nowhere --dir ckpt -- ../saver ckpt good
says 2 'wrote nothing into' 'a job that saves nothing' "$rq" crashpoints --dir ckpt -- true
says 3 'ended with exit code 1' 'a job that fails by itself' "$rq" crashpoints --dir ckpt -- false
says 3 'no program nowhere' 'no program' "$rq" crashpoints --dir ckpt -- nowhere
says 2 'does not resume by itself' 'a job that does not resume' \
    "$rq" crashpoints --dir ckpt -- sh -c '[ ! -e ckpt/x ] || { echo it is there already; exit 1; }; echo >ckpt/x'
grep -q 'it is there already' "$dir/said" || fail 'its last lines are not said'
says 2 'the record is full \(4096 bytes' 'a record that is too large' "$rq" crashpoints --max-bytes 4096 --dir ckpt -- ../saver ckpt good

# ---- killed in the middle ----
nap=5$$ # seconds: who sleeps so long is of this script
killed() { # killed ISOLATION [AS...]
    "${@:2}" "$rq" crashpoints --isolation "$1" --max-bytes 1000000 --out "killed-$1${2-}" -- sh -c 'echo "$$ in $0" >"$0/x"; echo >&2; [ -e ../go ] || exec sleep "$1"' '{dir}' $nap >"$dir/said" 2>&1 &
    own=$!
    tail --pid=$own -n 0 -f /dev/null & wait_end=$!
    timeout 180 bash -c 'until pgrep -fx "sleep $0" >/dev/null; do read -rt 0.05 <> <(:); done; :' $nap || fail "killed, $*: the job did not start"
    kill -9 $own
    wait $wait_end 2>/dev/null
    timeout 180 bash -c 'while pgrep -fx "sleep $0" >/dev/null; do read -rt 0.05 <> <(:); done; :' $nap || fail "killed, $*: the job is left"
    [ "$1" = namespaces ] || cleaned "killed-$1${2-}" "${@:2}"
}
roomy=0
[ "$(stat -f -c %T /dev/shm)" = tmpfs ] && [ "$(stat -f -c %T .)" != tmpfs ] && [ "$(df --output=avail -k /dev/shm | tail -n 1)" -gt 100000 ] &&
    [ "$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)" -gt 100000 ] && roomy=1
cleaned() { # cleaned OUT [AS...]: what a killed one had in /dev/shm goes with the folder of its runs
    local left
    left=/dev/shm/rankquake-crashpoints-$(sed -n 's/.*"space": *"pid:\[\([0-9]*\)\]".*"harness", *"pid": *\([0-9]*\), *"start_ticks": *\([0-9]*\).*/\1-\2-\3/p' "$1"/*/presence.json)
    [ $roomy = 0 ] || [ -d "$left" ] || fail "killed, ${*:2}: there is no $left"
    [ $roomy = 0 ] || says 0 "would remove $left, left by harness" "clean --dry-run of what was killed, ${*:2}" "${@:2}" "$rq" clean --dry-run "$1"
    says 0 "removed $([ $roomy = 0 ] || echo "$left, left by harness")" "clean of what was killed, ${*:2}" "${@:2}" "$rq" clean "$1"
    [ ! -e "$left" ] || fail "killed, ${*:2}: $left is left"
}
for kind in namespaces processes; do
    killed $kind
    [ ${#ordinary[@]} = 0 ] || killed $kind "${ordinary[@]}"
done
grep -F " $dir/" /proc/self/mounts && fail 'something is left mounted'
exit $bad
