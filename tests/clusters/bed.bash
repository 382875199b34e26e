# bed: a small cluster on one machine. A control host and hosts n0, n1, ..., each with a network, processes, mounts, ipc and
# a host name of its own, joined by a bridge. To be sourced by a script of this folder, which then says
#
#   bed_needs           print what is missing here, one reason a line
#   bed_configure N...  write configuration into $dir, before anything is started
#   bed_control         start the daemons of the control host
#   bed_host NAME       start those of a host
#   bed_settle N        in the control host, when all are up: wait until the cluster is of use
#
# and calls `bed "$@"` as its last line. Nothing has a name outside: all of it ends with the first process of the control
# host. All hosts know an ordinary user, worker, uid 1000, whose home is /run/worker; root's is /run/root, so that no shell
# in them runs what the caller's home has for shells that begin. Every process of a bed holds $dir/lock, so `down` knows from
# the kernel when the last one has gone; a process is only ever signalled by its id together with the time of its start.
# Waiting is for a line, a lock or an end, never for time. Hosts are told each other's hardware addresses: the kernel's table
# of what it learns itself is one for all namespaces, and 1024 entries are not enough for 33 hosts.
set -euo pipefail
bed_script=$(realpath "$0") bed_net=10.77.0 bed_deadline_s=90
bed_own=(--net --mount --pid --uts --ipc --fork --kill-child --mount-proc)

bed_usage() {
    cat <<USAGE
usage: $(basename "$0") up DIR [HOSTS [WORD]]  start; when it returns, the cluster is of use. 77: it cannot run here, and why
       $(basename "$0") in DIR ctl|nI CMD...   run CMD there, in this directory; variables of \$DIR/env are set
       $(basename "$0") kill DIR nI            the host dies at once, with all of its processes
       $(basename "$0") cut DIR nI             it loses its power: nothing is heard of it any more, and then it dies
       $(basename "$0") start DIR nI           a host that is off comes back
       $(basename "$0") silence DIR nI on|off  its network card is taken off the bridge, and put back
       $(basename "$0") down DIR               end all of it, and remove DIR
USAGE
}

bed_say() { echo "$(basename "$bed_script"): $*" >&2; }

bed_start_time() { # when process $1 was started, in ticks: the 22nd field, counted from behind its name
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    set -- ${stat##*) }
    echo "${20}"
}

bed_note() { echo "$1 $(bed_start_time "$1")" >"$2"; } # remember process $1 in file $2

bed_noted() { # the process of file $1, if it is still that one
    local pid start
    read -r pid start 2>/dev/null <"$1" && [ "$(bed_start_time "$pid")" = "$start" ] && echo "$pid"
}

bed_init() { # the first process of the host whose `unshare` file $1 names
    local parent init=
    parent=$(bed_noted "$1") || return 1
    read -r init _ <"/proc/$parent/task/$parent/children" || [ -n "$init" ] && echo "$init" # its line has no end
}

bed_enter() { HOME=/run/root exec nsenter -t "$1" -n -m -p -u -i --wd="$PWD" -- "${@:2}"; }

# bed_ready FD WHAT LOG: until a line "ready" comes from there. What does not say it has failed.
bed_ready() {
    local line=
    read -r -t "$bed_deadline_s" -u "$1" line || :
    [ "$line" = ready ] && return
    bed_say "$2 did not come up; $3 says:"
    tail -n 20 "$3" >&2
    return 1
}

# bed_daemon LOG LINE CMD...: starts CMD, which stays in the foreground, with its output in LOG, and returns when a line that
# contains LINE was in it.
bed_daemon() {
    local log=$1 line=$2 said
    shift 2
    exec {said}< <("$@" 2>&1 </dev/null | bed_watch "$log" "$line")
    bed_ready "$said" "$1" "$log" || return 1
    exec {said}<&-
}
bed_watch() {
    local text told=
    trap '' PIPE
    while IFS= read -r text; do
        printf '%s\n' "$text" >>"$1"
        [ -n "$told" ] || [[ $text != *"$2"* ]] || { echo ready; told=1; exec >/dev/null; }
    done
}

bed_missing() {
    [ "$(id -u)" = 0 ] || { echo "namespaces of hosts need root"; return; }
    for tool in ip unshare nsenter flock; do command -v "$tool" >/dev/null || echo "$tool is not installed"; done
    unshare "${bed_own[@]}" sh -c 'ip link add br0 type bridge && ip link add v0 type veth peer name v1' 2>/dev/null ||
        echo "this host grants no namespaces with a bridge in them"
    bed_needs
}

bed_up() {
    local n=${1:-2} reasons ready
    [[ $n =~ ^[1-9][0-9]?$ ]] || { bed_say "HOSTS is a number from 1 to 99, not $n"; exit 64; }
    reasons=$(bed_missing) && [ -z "$reasons" ] || { echo "skipped: $(basename "$bed_script"): ${reasons//$'\n'/, }"; exit 77; }
    bed_noted "$dir/control" >/dev/null 2>&1 && { bed_say "$dir is up already"; exit 64; }
    [ ! -e "$dir" ] || [ -z "$(ls -A "$dir")" ] || { bed_say "$dir is not empty; name a folder that is not there yet"; exit 64; }
    mkdir -p "$dir"/{log,hosts,local} && chmod 755 "$dir"
    : >"$dir/env"
    echo "127.0.0.1 localhost" >"$dir/etc.hosts"
    echo "$bed_net.254 ctl" >>"$dir/etc.hosts"
    for ((i = 0; i < n; i++)); do echo "$bed_net.$((i + 1)) n$i" >>"$dir/etc.hosts"; done
    {
        grep -v -e '^worker:' -e '^[^:]*:[^:]*:1000:' -e '^root:' /etc/passwd
        echo 'root:*:0:0:root:/run/root:/bin/bash'
        echo 'worker:*:1000:1000::/run/worker:/bin/bash'
    } >"$dir/passwd"
    bed_neighbours "$n" >"$dir/neighbours"
    bed_configure "$n" "${@:2}"
    exec 9>"$dir/lock" && flock -s 9
    exec {ready}< <(exec setsid unshare "${bed_own[@]}" "$bed_script" _control "$dir" "$n" </dev/null 2>>"$dir/log/control")
    bed_note $! "$dir/control"
    exec 9>&-
    bed_ready "$ready" "the cluster" "$dir/log/control" || { bed_down; exit 1; }
}

bed_card() { printf 02:52:51:00:00:%02x "$1"; } # the hardware address of the host whose address ends so

bed_neighbours() { # for `ip -batch`, with DEV to be replaced
    local last
    for last in $(seq 1 "$1") 254; do
        echo "neigh replace $bed_net.$last lladdr $(bed_card "$last") dev DEV nud permanent"
    done
}

bed_know() { ip -batch <(sed "s/DEV/$1/; /\.$2 /d" "$dir/neighbours"); } # all but $bed_net.$2, which is oneself

bed_private() { # mounts that a host has for itself: /run, /dev/shm, /var/tmp, names of hosts, and a disk that no other sees
    mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /dev/shm && mount --bind "$dir/etc.hosts" /etc/hosts
    mount -t tmpfs -o mode=1777 tmpfs "$dir/local" && mount --bind "$dir/passwd" /etc/passwd
    [[ $dir == /var/tmp/* ]] || mount -t tmpfs -o mode=1777 tmpfs /var/tmp # where helpers lock their host
    install -d -o 1000 -g 1000 /run/worker
    install -d -m 700 /run/root && export HOME=/run/root
    ip link set lo up
}

bed_for_ever() { # children that nobody else waits for are waited for here
    exec >/dev/null
    sleep infinity &
    wait $!
}

bed_run_control() {
    hostname ctl
    ip link add br0 address "$(bed_card 254)" type bridge && ip addr add "$bed_net.254/24" dev br0 && ip link set br0 up
    bed_private
    bed_know br0 254
    bed_control >&2
    local fds=() i fd
    for ((i = 0; i < $1; i++)); do bed_begin_host "n$i" && fds+=("$bed_fd"); done
    for ((i = 0; i < $1; i++)); do bed_ready "${fds[i]}" "n$i" "$dir/log/n$i.out"; done
    for fd in "${fds[@]}"; do exec {fd}<&-; done
    bed_settle "$1" >&2
    echo ready
    bed_for_ever
}

# In the control host. A card of the one before may still be on its way out.
bed_begin_host() {
    ip link del "v$1" 2>/dev/null || :
    exec {bed_fd}< <(exec 8</proc/self/ns/net 6>"$dir/hosts/$1.lock" && flock -w "$bed_deadline_s" 6 && exec unshare "${bed_own[@]}" "$bed_script" _host "$dir" "$1" </dev/null 2>>"$dir/log/$1.out")
    bed_note $! "$dir/hosts/$1"
}

bed_run_host() {
    hostname "$1"
    exec 7</proc/self/ns/net
    # One address for ever: others know it while the host is off.
    nsenter --net=/proc/self/fd/8 ip link add "v$1" type veth \
        peer name eth0 address "$(bed_card "$((${1#n} + 1))")" netns /proc/self/fd/7
    nsenter --net=/proc/self/fd/8 ip link set "v$1" master br0 up
    exec 7<&- 8<&-
    bed_private
    ip addr add "$bed_net.$((${1#n} + 1))/24" dev eth0 && ip link set eth0 up && ip route add default via "$bed_net.254"
    bed_know eth0 $((${1#n} + 1))
    bed_host "$1" >&2
    echo ready
    bed_for_ever
}

bed_in() { # bed_in HOST CMD...
    local init
    init=$(bed_init "$dir/control") || { bed_say "$dir is not up"; exit 1; }
    # shellcheck disable=SC1091
    set -a && . "$dir/env" && set +a
    [ "$1" != ctl ] || bed_enter "$init" "${@:2}"
    bed_enter "$init" "$bed_script" _in "$dir" "$@"
}

bed_in_host() { # in the control host
    local init
    init=$(bed_init "$dir/hosts/$1") || { bed_say "host $1 is off, or there is none"; exit 1; }
    bed_enter "$init" "${@:2}"
}

bed_down() {
    local init
    [ -e "$dir/lock" ] || exit 0
    if init=$(bed_init "$dir/control"); then kill -KILL "$init"; fi
    flock -w "$bed_deadline_s" "$dir/lock" true || { bed_say "processes of $dir do not end: ${init:-none is known}"; exit 1; }
    rm -rf "$dir"
}

bed_kill_host() { # in the control host; `unshare` waits for the first process, and holds the host's lock until then
    local init
    init=$(bed_init "$dir/hosts/$1") || { bed_say "host $1 is off, or there is none"; exit 1; }
    kill -KILL "$init" && flock -w "$bed_deadline_s" "$dir/hosts/$1.lock" true || { bed_say "processes of $1 do not end"; exit 1; }
}

bed_start_host() {
    ! bed_noted "$dir/hosts/$1" >/dev/null || { bed_say "host $1 is on"; exit 64; }
    bed_begin_host "$1" && bed_ready "$bed_fd" "$1" "$dir/log/$1.out"
}

bed() {
    local verb=${1-} host=${3-}
    [ $# -ge 2 ] || { bed_usage >&2; exit 64; }
    dir=$(realpath -m "$2")
    case $verb in kill | cut | start | silence | in)
        [ "$host" = ctl ] && [ "$verb" = in ] || grep -q " $host\$" "$dir/etc.hosts" 2>/dev/null || { bed_say "$dir has no host ${host:-of no name}"; exit 64; } ;;
    esac
    case $verb in
    up) bed_up "${@:3}" ;;
    in) bed_in "${@:3}" ;;
    kill | cut | start) bed_in ctl "$bed_script" "_$verb" "$dir" "$host" ;;
    silence)
        case ${4-} in
        on) bed_in ctl ip link set "v$host" nomaster ;;
        off) bed_in ctl ip link set "v$host" master br0 ;;
        *) bed_usage >&2; exit 64 ;;
        esac ;;
    down) bed_down ;;
    _control) bed_run_control "$host" ;;
    _host) bed_run_host "$host" ;;
    _in) bed_in_host "${@:3}" ;;
    _cut) ip link set "v$host" nomaster && bed_kill_host "$host" ;;
    _kill) bed_kill_host "$host" ;;
    _start) bed_start_host "$host" ;;
    *) bed_usage >&2; exit 64 ;;
    esac
}
