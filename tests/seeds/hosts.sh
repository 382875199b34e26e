#!/usr/bin/env bash
# S3 3.6, S4 4.4, S5 5.4, S1 1.8: hosts that talk to each other, one command for a list of them, -H host1,host2 --accelerators 4
# PROGRAM: over real ssh to two hosts that are network namespaces with a wire between them, each with an sshd of its own.
# deadline: 60 s
set -u
. tests/live/patience.bash
skip() {
    echo "$*"
    exit 77
}
fail() {
    echo "$*"
    cat "$TMPDIR"/said "$TMPDIR"/sshd.*
    exit 1
}
if [ "${1-}" != inside ]; then
    [ "$(id -u)" = 0 ] || skip 'needs root: sshd separates its privileges by another user'
    for program in ssh ssh-keygen ip nsenter; do
        command -v $program >/dev/null || skip "no $program on this host"
    done
    [ -x /usr/sbin/sshd ] || skip 'no sshd on this host: apt install openssh-server'
    unshare -nmu true 2>"$TMPDIR/said" || skip "no namespaces here: $(cat "$TMPDIR/said")"
    BIN=$(cd "$BIN" && pwd) exec unshare -nmu --kill-child --fork --pid --mount-proc bash "$0" inside
fi
cd "$TMPDIR" && : >said || exit 1

# The names, in each namespace's hosts file alone; sshd's folder for what it separates.
printf '127.0.0.1 localhost\n10.77.0.1 host1\n10.77.0.2 host2\n' | tee names >names.host2
mount --bind names /etc/hosts && mount -t tmpfs none /run && mkdir /run/sshd || fail 'mounts'
# What the user's shell does at each login is not asked about.
[ ! -f ~/.bashrc ] || mount --bind /dev/null ~/.bashrc || fail 'mounts'
hostname host1
mkfifo there hold
unshare -nmu bash -c 'hostname host2; mount --bind names.host2 /etc/hosts; echo up >there; read -r _ <hold' &
other=$!
read -r _ <there
ip link add wire1 type veth peer name wire2 netns $other || skip 'no veth in this kernel'
on() { # on HOST COMMAND...
    if [ "$1" = host1 ]; then "${@:2}"; else nsenter -t $other -n -m -u "${@:2}"; fi
}
for k in 1 2; do
    on host$k ip link set lo up && on host$k ip addr add 10.77.0.$k/24 dev wire$k && on host$k ip link set wire$k up ||
        fail "host$k: no address"
done

ssh-keygen -q -t ed25519 -N '' -f host_key && ssh-keygen -q -t ed25519 -N '' -f user_key || fail 'keys'
cp user_key.pub authorized
printf '%s %s\n' host1,host2 "$(cut -d' ' -f1,2 host_key.pub)" >known
cat >sshd_config <<END
HostKey $TMPDIR/host_key
AuthorizedKeysFile $TMPDIR/authorized
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
PidFile none
END
cat >ssh_config <<END
IdentityFile $TMPDIR/user_key
IdentitiesOnly yes
UserKnownHostsFile $TMPDIR/known
GlobalKnownHostsFile /dev/null
StrictHostKeyChecking yes
BatchMode yes
LogLevel ERROR
END
for k in 1 2; do
    exec 4< <(exec 2>&1 && on host$k /usr/sbin/sshd -D -e -f "$TMPDIR/sshd_config")
    while read -r -t 180 -u 4 line; do
        echo "$line" >>sshd.$k
        [[ $line == *'Server listening on 0.0.0.0'* ]] && break
    done || fail "sshd on host$k did not start"
    cat <&4 >>sshd.$k &
done
for k in 1 2; do
    [ "$(ssh -F ssh_config host$k hostname 2>said)" = host$k ] || skip "ssh to a host of its own is refused here: $(tail -n 1 said)"
done

X='a b' timeout 300 "$BIN/rankrun" -H host1,host2 --accelerators 4 --ssh "ssh -F $TMPDIR/ssh_config" sh -c \
    'echo "$RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE on $(hostname) with $X in $PWD" &&
     getent ahosts "$MASTER_ADDR" >/dev/null' >out 2>said || fail "exit $?"
[ "$(wc -l <out)" = 8 ] || fail "eight workers: $(cat out)"
[ "$(sed 's/.*\] \([0-9]\) of 8, .*/\1/' out | sort)" = "$(seq 0 7)" ] || fail "ranks: $(cat out)"
for k in 1 2; do
    [ "$(grep "^\[host$k\] .* on host$k with a b in $TMPDIR\$" out | sed 's/.*, \(.*\) on .*/\1/' | sort)" = \
        "$(printf '%d of 4\n' 0 1 2 3)" ] || fail "host$k: $(cat out)"
done

# A real program by the line as it stands: eight ranks on two hosts, and the model of one process.
BIN=$(cd "$BIN" && pwd)
seed=(--dist-backend ddl --seed 1234 --dist-url env:// --dataset=generated --samples=96 --epochs=1 --log-every=0)
timeout 300 "$BIN/rankrun" -H host1,host2 --accelerators 4 --ssh "ssh -F $TMPDIR/ssh_config" "$BIN/ranktrain" "${seed[@]}" >out 2>said ||
    fail "ranktrain on two hosts: exit $?"
grep -q '^.host1. world 8, ' out && [ "$(sed -n 's/^.host1. \(model .*\)/\1/p' out)" = "$("$BIN/ranktrain" "${seed[@]}" 2>said | grep '^model ')" ] ||
    fail "ranktrain on two hosts: $(cat out)"

# S1 1.8: MASTER_ADDR is the host's own name where each node gives it and all resolve it; ranks meet there.
exec 6< <(exec "$BIN/rankrun" store --host=10.77.0.1 --port=0)
store=$!
read -r -t 180 -u 6 line
agents=()
for k in 1 2; do
    on host$k sh -c 'cd "$3" && exec timeout 300 "$0" --nnodes=2 --rdzv_id=names --rdzv_backend=embedded --rdzv_endpoint="$1" --local_addr="$(hostname)" \
        sh -c "echo \$MASTER_ADDR >\"named.\$RANK\"; exec \"\$0\" --dataset=generated --steps=2 --log-every=0" "$2"' \
        "$BIN/rankrun" "10.77.0.1:${line##*:}" "$BIN/ranktrain" "$TMPDIR" >"said.$k" 2>&1 &
    agents+=($!)
done
for agent in "${agents[@]}"; do wait "$agent" || { cat said.1 said.2; fail "by names: exit $?"; }; done
kill $store
[[ $(cat named.0) == host[12] ]] && cmp -s named.0 named.1 && grep -q '^model ' said.1 said.2 || fail "MASTER_ADDR: $(cat named.* said.1 said.2)"

# What fails on one host ends the command with the job's exit code, and nothing is left on either.
timeout 300 "$BIN/rankrun" -H host1,host2 --accelerators 4 --ssh "ssh -F $TMPDIR/ssh_config" sh -c \
    '[ $RANK = 5 ] && exit 7; exec sleep 4321' >out 2>said
[ $? = 1 ] && grep -q 'exited with code 7' said || fail 'a worker fails on one host'
! grep -qszx 'sleep\|4321' /proc/[0-9]*/cmdline || fail "workers are left: $(grep -lszx 4321 /proc/[0-9]*/cmdline)"

# The first host's name is a loopback address there, as Debian's installer has it: its store and its rank 0 are reached
# all the same.
printf '127.0.0.1 localhost\n127.0.1.1 host1\n10.77.0.2 host2\n' >names
timeout 300 "$BIN/rankrun" -H host1,host2 --rdzv-conf $patient --ssh "ssh -F $TMPDIR/ssh_config" sh -c \
    'echo "$RANK meets at $(getent ahosts "$MASTER_ADDR" | head -n 1)"' >out 2>said ||
    fail 'a first host that is 127.0.1.1 to itself'
grep -q '^.host2. 1 meets at 10.77.0.1 ' out && grep -q 'listens on all addresses' said ||
    fail "a first host that is 127.0.1.1 to itself: $(cat out)"
exit 0
