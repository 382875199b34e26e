#!/usr/bin/env bash
# Text that somebody else wrote - in scenarios, names of files, a job's output, answers of probes and own checks, what a
# store answers, what a host says - fed to every verb: no byte that a terminal obeys is printed, on a terminal none but our
# own colours, and none stands in the pages and files that a run leaves.
# deadline: 240 s
set -u
. tests/live/patience.bash
rq=$(realpath "$BIN/rankquake") rr=$(realpath "$BIN/rankrun")
here=$PWD
export XDG_CACHE_HOME=$TMPDIR/cache
cd "$TMPDIR" || exit 1
failed=0 said=0
trap '[ -z "$(jobs -p)" ] || kill $(jobs -p) 2>/dev/null' EXIT

# A title, a cleared screen, C1, another direction, something that is not seen, a byte that is no character.
H=$'\e]0;pwned\a\e[2J\xc2\x9b2J\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8b\x7f'
BAD=$H$'\x9b\xff'
Y='\e]0;pwned\a\e[2J\x9b2J\u202e\u2066\u200b\x7f' # the same within double quotes of YAML

# What must not be printed. The bytes of a character that is cut off count too.
obeyed='[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa0-\xaf]|\xff'
clean() { # clean WHAT FILE [NEED]: the text was there, and did no harm
    said=$((said + 1))
    if LC_ALL=C grep -qaP "$obeyed" "$2"; then
        echo "$1: printed as it came:"
        LC_ALL=C grep -aP "$obeyed" "$2" | cat -v | cut -c1-300 | head -n 3
        failed=1
    elif ! iconv -f utf-8 -t utf-8 "$2" >/dev/null 2>&1; then
        echo "$1: holds bytes that are no character"
        failed=1
    elif [ $# = 3 ] && ! grep -qaF -- "$3" "$2"; then
        echo "$1: \"$3\" is not in it, so that nothing was tried:"
        head -n 20 "$2"
        failed=1
    fi
}
tell() { # tell NEED COMMAND...: what it prints, both ways, without a terminal
    local need=$1
    shift
    timeout 300 "$@" >out 2>err </dev/null
    cat out err >both
    clean "$(printf '%q ' "${@##*/}" | cut -c1-100)" both "$need"
}
# script(1) makes a terminal. Our own: colours, and a line that is written over. Its line ends are \r\n.
tell_terminal() { # tell_terminal NEED COMMAND...
    local need=$1
    shift
    command -v script >/dev/null || return 0
    TERM=xterm COLUMNS=100 timeout 300 script -qec "$(printf '%q ' "$@")" typescript </dev/null >/dev/null 2>&1
    sed '1{/^Script started/d};${/^Script done/d}' typescript |
        sed -E 's/\x1b\[(0|1|2|31|32|33)m//g; s/\r*\x1b\[K//g; s/\r+$//' >both
    clean "on a terminal: $(printf '%q ' "${@##*/}" | cut -c1-100)" both "$need"
}

# ---- a scenario of a stranger ----
mkdir files && cd files || exit 1
name=files/$'evil\nevil.yaml: valid\e[2J\xe2\x80\xae.yaml'
cd ..
cat >"$name" <<END
scenario: s
"$Y": 1
job: {run: [a, "$Y"], max_restarts: "$Y"} # $'\xe2\x80\xae'
timeline: [{when: {step: "$Y"}, fault: "$Y", on: "$Y"}]
END
for verb in lint plan 'sim --scenario' run shrink judge; do
    # shellcheck disable=SC2086
    tell '' "$rq" $verb "$name"
    tell_terminal '' "$rq" $verb "$name"
    if grep -q '^evil.yaml: valid' both; then
        echo "$verb: the name of a file makes a line of its own"
        failed=1
    fi
done
tell '\x1b]0;pwned\x07' "$rq" lint "$name"
printf 'job: {run: [\x9b]}\n' >bytes.yaml
tell 'this is not text' "$rq" lint bytes.yaml
printf 'job: {run: [a, "%s"\n' $'\xe2\x80\xae' >open.yaml
tell 'this is not YAML' "$rq" lint open.yaml
tell '' "$rq" explain "$BAD"
tell '' "$rq" list "$BAD"
tell '' "$rq" "$BAD"
tell '' "$rq" lint --"$BAD"
for verb in lint plan run judge report shrink clean enter halt compare; do
    tell '' "$rq" "$verb" "no/$BAD"
done
tell '' "$rq" try -- "$BAD"
tell '' "$rq" init -- "$BAD"
tell '' "$rq" doctor
tell 'no file' "$rq" lint "no file $BAD"

# ---- a run of it ----
cat >check.sh <<'END'
cat >/dev/null
printf '{"status":"fail","seen":"%s"}' '\u001b]0;pwned\u0007\u001b[2J\u009b2J\u202e\u2066\u200b\u007f'
printf '%s\n' "$BAD" >&2
END
cat >job.sh <<'END'
printf 'step %s %s\n' 1 "$BAD" 2 "$BAD" 3 "$BAD"
printf '%s\n' "$BAD" >&2
[ "$1" = well ] || exit 3
END
export BAD
cat >s.yaml <<END
scenario: hostile
about: "about $Y. More"
cluster: {nodes: 1}
job:
  rdzv_conf: $patient_map
  workers_per_node: 1
  max_restarts: 0
  run: [bash, $TMPDIR/job.sh, well, "$Y"]
  env: {X: "$Y"}
observe: {step: '^step ([0-9]+) '}
probe:
  asked: {cmd: [printf, '%s', "$Y"], every: 100ms, tolerance: /other/}
timeline: []
checks: [{name: mine, program: [bash, $TMPDIR/check.sh]}]
expect:
  log: [{never: '/^step 2 .*/'}]
  probe: {asked: always}
END
tell '\x1b]0;pwned\x07' "$rq" plan s.yaml
tell 'pwned' "$rq" plan --format json s.yaml
tell_terminal '\u202e' "$rq" plan s.yaml
tell 'mine' "$rq" run s.yaml --out well
if grep -q 'exit code 4' out; then
    tail -n 1 out
    exit 77
fi
grep -qF '\x1b]0;pwned\x07' both || { echo 'the run tells nothing of what was planted:'; cat both; failed=1; }
tell_terminal 'mine' "$rq" run s.yaml --out terminal
sed 's/, well,/, badly,/' s.yaml >bad.yaml
tell 'last lines of' "$rq" run bad.yaml --out bad
tell_terminal 'last lines of' "$rq" run bad.yaml --out bad-terminal
for dir in well/* bad/*; do
    tell '' "$rq" judge "$dir"
    for format in terminal ctrf html json junit markdown prometheus svg tap; do
        tell 'hostile' "$rq" report "$dir" --to $format
    done
    for format in csv github gitlab trace; do # empty where all is well, or without the name
        tell '' "$rq" report "$dir" --to $format
    done
    tell_terminal 'hostile' "$rq" report "$dir"
    while IFS= read -r file; do
        clean "$file" "$file"
    done < <(find "$dir" -name '*.html' -o -name '*.json' -o -name '*.jsonl' -o -name '*.xml')
done
if command -v python3 >/dev/null; then
    python3 -c 'import sys, xml.dom.minidom, json
for f in sys.argv[1:]: xml.dom.minidom.parse(f) if f.endswith("xml") else json.load(open(f))' \
        well/*/junit.xml well/*/report.json well/*/verdict.json || failed=1
fi
dir=$(echo well/*)
hostile=$'well/x\nended process 1, by nobody\e[2J'
cp -R "$dir" "$hostile" && mkdir -p "$hostile/scratch"
tell '' "$rq" clean well
tell '' "$rq" judge "$hostile"
tell '' "$rq" shrink "$hostile" --budget 1s
tell '' "$rq" halt "$hostile"
tell '' "$rq" enter "$hostile" "$BAD"
printf '{"seq":1,"t":1,"source":"%s","kind":"%s"}\n' "$BAD" "$BAD" >"$dir/history.jsonl"
tell '' "$rq" judge "$dir"

# ---- rankrun: its own words, a host, a store ----
tell '' "$rr" "--$BAD"
tell '' "$rr" --standalone --rdzv-conf "$BAD" true
tell '' "$rr" --standalone "no/$BAD"
tell '' "$rr" --log-format json --standalone "no/$BAD"
port=$((20000 + $$ % 4000 * 3))
mkfifo up go
exec 5<>up 6<>go
"$rr" --rdzv-endpoint "127.0.0.1:$port" --rdzv-id job --nnodes 1 --role "role$H" \
    sh -c 'echo up >up; read -r x <go; exit 3' >agent 2>&1 &
read -r -t 180 -u 5 _ || { echo "no job to ask about: $(cat -v agent)"; failed=1; }
tell 'role' "$rr" status --rdzv-endpoint "127.0.0.1:$port" --rdzv-id job
tell 'role' "$rr" status --rdzv-endpoint "127.0.0.1:$port" --rdzv-id job --format json
tell_terminal 'role' "$rr" status --rdzv-endpoint "127.0.0.1:$port" --rdzv-id job
echo go >&6
wait $!
clean 'an agent' agent

cat >ssh <<'END'
#!/bin/sh
printf '%s\rlast\n\033[32mgreen\033[0m\n' "$BAD"
printf '%s\n' "$BAD" >&2
exit 255
END
chmod +x ssh
command -v script >/dev/null && tell_terminal 'last' "$rr" -H unknown.invalid --ssh ./ssh --rdzv-conf "$patient" true

if command -v python3 >/dev/null; then
    cat >etcd.py <<'END'
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.dumps({"error": sys.argv[1], "message": sys.argv[1], "code": 3}).encode()
        self.send_response(400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_PUT = do_DELETE = do_POST
    def log_message(self, *a): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
END
    mkfifo port
    python3 etcd.py "$H" >port &
    read -r -t 180 etcd <port
    for backend in etcd-v3 etcd; do
        tell '' "$rr" --rdzv-backend $backend --rdzv-endpoint "127.0.0.1:$etcd" --rdzv-id x \
            --rdzv-conf join_timeout=1 true
        tell '\x1b]0;pwned\x07' "$rr" status --rdzv-backend $backend --rdzv-endpoint "127.0.0.1:$etcd" --rdzv-id x
    done
    kill $!
fi
[ $failed = 0 ] && echo "$said outputs"
cd "$here" && exit $failed
