#!/usr/bin/env bash
# An endpoint at which something else answers: a web server that is no etcd, a server that speaks no HTTP, one that
# says nothing. Every backend names the endpoint, starts no worker and does not wait beyond its timeout.
# deadline: 90 s
set -u
if ! command -v python3 >/dev/null; then
    echo 'no python3 on this host to stand for other servers'
    exit 77
fi
run=$(cd "$BIN" && pwd)/rankrun
cd "$TMPDIR" || exit 1
bad=0
cat >others.py <<'END'
import http.server, socket, threading

class Web(http.server.BaseHTTPRequestHandler):
    def answer(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>It works</html>")
    do_GET = do_POST = do_PUT = answer
    def log_message(self, *words):
        pass

def greet(server, text):
    taken = []
    while True:
        taken.append(server.accept()[0])
        taken[-1].sendall(text)

web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
threading.Thread(target=web.serve_forever, daemon=True).start()
ports = [web.server_address[1]]
for text in b"220 mail.example.org ready\r\n", b"":
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=greet, args=(server, text), daemon=True).start()
    ports.append(server.getsockname()[1])
print(*ports, flush=True)
threading.Event().wait()
END
exec 5< <(exec python3 others.py)
others=$!
trap 'kill $others' EXIT
read -r -t 180 -u 5 web mail silent || exit 1
agents=() named=()
for backend in embedded etcd-v3 etcd; do
    for port in $web $mail $silent; do
        timeout 300 "$run" --nnodes=1:2 --rdzv-backend=$backend --rdzv-endpoint=127.0.0.1:"$port" \
            --rdzv-conf=join_timeout=1 touch started 2>"said.$backend.$port" &
        agents+=($!) named+=("$backend.$port")
    done
done
for k in "${!agents[@]}"; do
    wait "${agents[k]}"
    rc=$? said=said.${named[k]}
    case $rc in 64 | 69) ;; *) echo "$said: exit $rc" && cat "$said" && bad=1 ;; esac
    grep -q "127.0.0.1:${named[k]##*.}\|no etcd" "$said" || { echo "$said: the endpoint is not named" && cat "$said" && bad=1; }
done
[ ! -e started ] || { echo 'a worker was started' && bad=1; }
exit $bad
