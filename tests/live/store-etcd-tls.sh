#!/usr/bin/env bash
# A real etcd that wants TLS, a client's certificate, a user and a password: the store's contract holds over it, a
# job runs over it, and each thing that can be wrong with them is told in a sentence. JOIN_TIMEOUT=5s (2s) is for an
# etcd that takes long to compare a wrong password.
# deadline: 120 s
set -u
. tests/live/certificates.bash
. tests/live/etcd.bash
need_program etcdctl etcd-client
BIN=$(realpath "$BIN") contract=$(realpath "$OUT")/tests/agent/store/spawn_contract
cd "$TMPDIR" || exit 1
make_authority ca
make_authority other
make_certificate server 127.0.0.1
make_certificate client 127.0.0.1

# Below the ephemeral range; by this shell's pid, so that two runs do not meet.
port=$((20000 + $$ % 5000 * 2))
begin_etcd "https://127.0.0.1:$port" data --bcrypt-cost 4 --enable-v2 --cert-file server.pem --key-file server.key \
    --trusted-ca-file ca.pem --client-cert-auth || fail 'no etcd'

control() {
    ETCDCTL_API=3 etcdctl --endpoints "https://127.0.0.1:$port" --cacert ca.pem --cert client.pem --key client.key \
        "$@" >said 2>&1 || fail "etcdctl $1 $2"
}
"$contract" "127.0.0.1:$port" ca.pem client.pem client.key job s3cret,4 >said 2>&1 ||
    fail 'the contract over TLS, with a user, where etcd asks for none'
control user add root:root
control user grant-role root root
control user add job:s3cret,4
control role add all
control role grant-permission --prefix=true all readwrite ''
control user grant-role job all
control auth enable
"$contract" "127.0.0.1:$port" ca.pem client.pem client.key job s3cret,4 >said 2>&1 ||
    fail 'the contract over TLS as a user'

echo 's3cret,4' >password
echo 'no' >wrong
run() { # run CONF PROGRAM...
    RANKRUN_STORE_PASSWORD=${password-} timeout 300 "$BIN/rankrun" --nnodes 1:1 --rdzv-backend etcd-v3 \
        --rdzv-endpoint "127.0.0.1:$port" --rdzv-id "${id-$RANDOM$RANDOM}" --rdzv-conf "join_timeout=30s,$1" --no-python \
        "${@:2}" >said 2>&1
}
legacy() { # legacy CONF: torchelastic's own protocol, over the v2 API of the same etcd
    timeout 300 "$BIN/rankrun" --nnodes 1:1 --rdzv-backend etcd --rdzv-endpoint "127.0.0.1:$port" --rdzv-id "$RANDOM" \
        --max-restarts 1 --rdzv-conf "last_call_timeout=0,$1" --no-python bash -c \
        '[ "$TORCHELASTIC_RESTART_COUNT" = 1 ] || exit 3' >said 2>&1
}
tls=protocol=https,cacert=ca.pem,cert=client.pem,key=client.key
run "$tls,user=job,password_file=password" true || fail 'a job over TLS as a user'
id=told run "$tls,user=job,password_file=password" true || fail 'a job to be asked about'
"$BIN/rankrun" status --rdzv-backend etcd-v3 --rdzv-endpoint "127.0.0.1:$port" --rdzv-id told \
    --rdzv-conf "$tls,user=job,password_file=password,profile=fast" >said 2>&1 && grep -q '^phase *closed: succeeded' said ||
    fail 'rankrun status over TLS as a user'
"$BIN/rankrun" status --rdzv-backend etcd-v3 --rdzv-endpoint "127.0.0.1:$port" --rdzv-id told --log-format json \
    --rdzv-conf "$tls,user=job,password_file=wrong" >said 2>&1
[ $? = 69 ] && grep -q '^{"time":.*"what":"store","text":".*invalid user ID or password' said ||
    fail 'rankrun status with a wrong password, as JSON'
run 'protocol=https,ca_cert=ca.pem,ssl_cert=client.pem,ssl_cert_key=client.key,user=job,password_file=password' \
    true || fail "a job with torchrun's other names"
# shellcheck disable=SC2016 # the worker's
password=s3cret,4 run "$tls,user=job" bash -c '[ -z "${RANKRUN_STORE_PASSWORD-}" ]' ||
    fail 'the password of the variable is not taken, or is left to the workers'

# torchelastic's own protocol, over the v2 API, which knows certificates and no users.
# shellcheck disable=SC2016 # the worker's
timeout 300 "$BIN/rankrun" --nnodes 1:1 --max-restarts 1 --rdzv-backend etcd --rdzv-endpoint "127.0.0.1:$port" --rdzv-id v2 \
    --rdzv-conf "$tls" --no-python bash -c '[ "$TORCHELASTIC_RESTART_COUNT" = 1 ]' >said 2>&1 ||
    fail 'a job of the legacy protocol over TLS'

# Every token is taken back in mid-job: the next call asks for a new one, and nobody notices.
mkfifo up down
exec 4<>up 5<>down
# shellcheck disable=SC2016 # the worker's
run "$tls,user=job,password_file=password" bash -c 'echo "$$" >up && read -r _ <down' &
job=$!
read -r -t 180 -u 4 _ || fail 'the job did not start'
mv said said.job
for what in disable enable; do
    ETCDCTL_API=3 etcdctl --user root:root --endpoints "https://127.0.0.1:$port" --cacert ca.pem --cert client.pem \
        --key client.key auth "$what" >said 2>&1 || fail "auth $what"
done
echo go >&5
wait "$job" || { cat said.job && fail 'a job whose token was taken back'; }

legacy "$tls" || fail "a job of torchelastic's protocol over TLS"
legacy "timeout=2s,${tls/cacert=ca.pem/cacert=other.pem}"
[ $? = 69 ] && grep -q 'cacert= names the file of who signs' said || fail "torchelastic's protocol, a wrong authority"
legacy "timeout=2s,protocol=https,cacert=ca.pem"
[ $? = 69 ] && grep -q 'it may want a certificate: --rdzv-conf cert=' said || fail "torchelastic's protocol, no certificate"

refused() { # refused CONF SENTENCE
    run "$1,join_timeout=${JOIN_TIMEOUT:-2s}" true
    local rc=$?
    [ $rc = 69 ] || fail "$1: exit code $rc, not 69"
    grep -q "$2" said || fail "$1: '$2' is not told"
}
refused "$tls,user=job,password_file=wrong" 'invalid user ID or password; these are of --rdzv-conf user'
refused "$tls" 'give --rdzv-conf user=NAME,password_file=FILE'
refused 'protocol=https,cacert=ca.pem' 'it may want a certificate: --rdzv-conf cert='
refused "${tls/cacert=ca.pem/cacert=other.pem}" 'cacert= names the file of who signs'
refused 'protocol=http' 'protocol=https'
exit 0
