# etcd: a real one, for the tests that want it; without it they are skipped. To be sourced at the root of the tree.

need_program() { # need_program NAME PACKAGE
    command -v "$1" >/dev/null && return
    echo "no $1 on this host: apt install $2"
    exit 77
}
need_program etcd etcd-server

# begin_etcd URL DIR [OPTION...]: sets etcd to the pid of a job of this shell; it serves when this returns. Its peers'
# port is the one behind URL's; what it says goes through DIR.said.
begin_etcd() {
    local line='' log address=${1#*://}
    rm -f "$2.said"
    mkfifo "$2.said"
    etcd --data-dir "$2" --unsafe-no-fsync --listen-client-urls "$1" --advertise-client-urls "$1" \
        --listen-peer-urls "http://${address%:*}:$((${1##*:} + 1))" "${@:3}" >"$2.said" 2>&1 &
    etcd=$!
    exec {log}<"$2.said"
    while read -r -t 180 -u "$log" line; do
        case $line in
        *'ready to serve client requests'*)
            cat <&"$log" >/dev/null & # it says more, and must not wait for a reader
            exec {log}<&-
            return 0
            ;;
        *'provided but not defined'*) break ;; # --enable-v2, to an etcd of 3.6
        esac
    done
    echo "etcd did not start within 60 s: $line"
    return 1
}
