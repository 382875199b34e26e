#!/usr/bin/env bash
# An embedded store behind something that speaks TLS for it and wants a client's certificate: a job runs through it,
# with its token, and recovers; who does not trust the certificate, or shows none, is told.
# deadline: 120 s
set -u
. tests/live/patience.bash
. tests/live/certificates.bash
if ! command -v python3 >/dev/null; then
    echo 'no python3 on this host: apt install python3'
    exit 77
fi
BIN=$(realpath "$BIN")
cd "$TMPDIR" || exit 1
make_authority ca
make_authority other
make_certificate server 127.0.0.1
make_certificate client 127.0.0.1

export RANKRUN_STORE_TOKEN=s3cret
exec 3< <(exec "$BIN/rankrun" store --host 127.0.0.1 --port 0 2>said.store)
read -r -t 180 -u 3 line || fail 'the store did not start'
cat >front.py <<'PY'
import asyncio, ssl, sys

tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain("server.pem", "server.key")
tls.load_verify_locations("ca.pem")
tls.verify_mode = ssl.CERT_REQUIRED


async def copy(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()


async def on_client(reader, writer):
    inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
    await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))


async def main():
    server = await asyncio.start_server(on_client, "127.0.0.1", 0, ssl=tls)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
PY
exec 4< <(exec python3 front.py "${line##*:}" 2>said.front)
read -r -t 180 -u 4 port || fail 'what speaks TLS did not start'

agent() { # agent N CONF PROGRAM...
    timeout 300 "$BIN/rankrun" --nnodes 2 --max-restarts 1 --rdzv-endpoint "127.0.0.1:$port" --rdzv-id tls \
        --local-addr "127.0.0.$1" --rdzv-conf "$patient,protocol=https,join_timeout=30,$2" --no-python "${@:3}" \
        >"said.$1" 2>&1
}
tls=cacert=ca.pem,cert=client.pem,key=client.key
# shellcheck disable=SC2016 # the worker's
worker=(bash -c '[ "$TORCHELASTIC_RESTART_COUNT" = 1 ]')
agent 2 "$tls" "${worker[@]}" &
first=$!
agent 3 "$tls" "${worker[@]}" || fail 'a job through TLS'
wait "$first" || fail 'the other agent of a job through TLS'
timeout 300 "$BIN/rankrun" status --rdzv-endpoint "127.0.0.1:$port" --rdzv-id tls --rdzv-conf "protocol=https,$tls" \
    >said.status 2>&1 || fail 'its status'

refused() { # refused N SENTENCE
    local rc=$?
    [ $rc = 69 ] || fail "exit code $rc, not 69"
    grep -qF -e "$2" "said.$1" || fail "'$2' is not told"
}
agent 4 "join_timeout=2s,${tls/ca.pem/other.pem}" true
refused 4 'cacert= names the file of who signs'
agent 5 join_timeout=2s,cacert=ca.pem true
refused 5 'it may want a certificate'
exit 0
