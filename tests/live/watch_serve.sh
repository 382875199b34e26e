#!/usr/bin/env bash
# watch --serve: a run as a page. Page and events come to whoever has the token and to nobody else; what a button sends
# strikes the run and is judged; pages that go away or do not read hold up nobody; the run does not mind who serves it.
# deadline: 300 s
set -u
command -v curl >/dev/null || { echo 'skipped: curl asks for the page, and there is none'; exit 77; }
rq=$(realpath "$BIN")/rankquake
dir=$TMPDIR/serve
mkdir "$dir"
failed=0

fail() {
    echo "$*"
    failed=1
}
cat >"$dir/s.yaml" <<'END'
scenario: served
cluster: {nodes: 2}
job: {run: [ranktrain, --steps=40, --compute-ms=10], workers_per_node: 1}
END
waits_for() { # waits_for TEXT <FILE: of what comes, until it does
    local line
    while IFS= read -r -t 180 line; do
        echo "$line" >>"$dir/seen"
        [[ $line == *$1* ]] && return 0
    done
    return 1
}
serve() { # serve DESCRIPTOR ARGUMENT...: leaves the server in $server and its address in $url
    eval "exec $1< <(exec \"\$rq\" watch \"\$run\" --serve ${*:2} 2>\"\$dir/server.err\")"
    server=$!
    IFS= read -r -t 180 -u "$1" url || { fail "no address is printed: $(cat "$dir/server.err")"; exit 1; }
    [[ $url =~ ^http://127\.0\.0\.1:[0-9]+/[0-9a-f]{32}/$ ]] || fail "no address with a token: $url"
}
gets() { # gets STATUS WHAT ARGUMENT...: of curl
    local status
    status=$(curl -s -m 60 -o "$dir/said" -w '%{http_code}' "${@:3}")
    [ "$status" = "$1" ] || fail "$2: $status, not $1: $(head -c 300 "$dir/said")"
}
says() { # says STATUS TEXT LINE
    gets "$1" "$3" -d "$3" "${url}say"
    grep -qF -- "$2" "$dir/said" || fail "$3: it does not say \"$2\": $(cat "$dir/said")"
}

exec 7< <(exec "$rq" run "$dir/s.yaml" --paused --out "$dir/out" 2>&1 </dev/null)
harness=$!
: >"$dir/seen"
waits_for 'it stands still until somebody says go' <&7 || { tail -n 1 "$dir/seen"; wait "$harness"; [ $? = 4 ] && exit 77; exit 1; }
run=$(echo "$dir"/out/*)

# ---- a server that is killed leaves the run alone; another one has another token ----
serve 8
first=$url
kill -KILL "$server"
wait "$server" 2>/dev/null
exec 8<&-
kill -0 "$harness" || fail 'the run ended with who served it'
serve 8
[ "${first%/}" != "${url%/}" ] && [ "${first:(-33)}" != "${url:(-33)}" ] || fail "the token is the same: $url"

# ---- the page, its events, and who gets neither ----
root=${url%/*/} port=${url#http://127.0.0.1:}
port=${port%%/*}
gets 200 'the page' -D "$dir/headers" "$url"
grep -q '^<!doctype html>' "$dir/said" || fail "this is no page: $(head -c 200 "$dir/said")"
grep -qi "content-security-policy: default-src 'none'" "$dir/headers" || fail "no policy: $(cat "$dir/headers")"
exec 9< <(exec curl -sN -m 250 "${url}events")
page=$!
waits_for '"words":true' <&9 || fail 'no event says that the run takes words'
grep -q '"state":"stands still"' "$dir/seen" || fail "no event says how the run stands: $(tail -n 2 "$dir/seen")"
wrong=$root/0123456789abcdef0123456789abcdef/
gets 403 'no token' "$root/"
gets 403 'a wrong token' "$wrong"
gets 403 'events of a wrong token' "${wrong}events"
gets 403 'words with a wrong token' -d go "${wrong}say"
gets 403 'the token of the one before' -d go "$root/${first:(-33)}say"
gets 403 'a name of somebody else' -H 'Host: example.org' "$url"
gets 403 'a name of somebody else, and our port' -d go -H "Host: example.org:$port" "${url}say"
gets 403 'a page of somebody else' -d go -H 'Origin: http://example.org' "${url}say"
gets 403 'a page of somebody else reads' -H 'Origin: http://example.org' "${url}events"
gets 404 'GET does not act' "${url}say" -G -d go
gets 405 'GET does not act' "${url}say"
gets 501 'PUT' -X PUT -d go "${url}say"
gets 404 'a path that leads out' --path-as-is "${url}../../../../etc/passwd"
gets 404 'a path that is coded' --path-as-is "${url}%2e%2e/%2e%2e/etc/passwd"
gets 400 'two lines' --data-binary $'go\ngo' "${url}say"
head -c 100000 /dev/zero | tr '\0' x >"$dir/long"
gets 413 'a body that is too long' -H 'Expect: 100-continue' --expect100-timeout 100 --data-binary @"$dir/long" "${url}say"
gets 413 'a line that is too long' -d "$(head -c 3000 "$dir/long")" "${url}say"
grep -q '"resumed"' "$run/history.jsonl" && fail 'somebody without the token let it go on'
grep -q '"by-hand"' "$run/history.jsonl" && fail "somebody without the token was heard: $(grep '"by-hand"' "$run/history.jsonl")"

# ---- ten that come and go, one that does not read ----
ten=()
for _ in 1 2 3 4 5 6 7 8 9 10; do
    curl -sN -m 100 "${url}events" >/dev/null &
    ten+=($!)
done
exec 5<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /%sevents HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n\r\n' "${url:(-33)}" "$port" >&5

# ---- buttons ----
says 422 'did you mean' 'worker-kil n1/0'
says 200 'it stands still when a worker comes to step 20' 'break 20'
says 200 'it goes on' go
waits_for 'it stands still until somebody says go' <&7 || fail 'it does not stand still at step 20'
kill -KILL "${ten[@]}"
wait "${ten[@]}" 2>/dev/null
says 200 'hand-1' 'worker-kill n1/0'
says 200 'it goes on' go

# ---- the end: the page is told, the server ends ----
waits_for '"ended":true' <&9 || fail 'the page is not told of the end'
wait "$page" || fail "the events do not end in order: curl $?"
grep -q '"id":"hand-1","fault":"worker-kill"' "$dir/seen" || fail 'no event has the fault'
timeout 60 cat <&8 >"$dir/said" || fail 'the server does not end with the run'
wait "$server"
rc=$?
[ $rc = 0 ] || fail "the server: exit $rc: $(cat "$dir/server.err")"
exec 5<&- 8<&-
cat <&7 >>"$dir/seen"
wait "$harness" || fail "the run did not pass: $(tail -n 30 "$dir/seen")"
grep -q '"by-hand","line":"worker-kill n1/0"' "$run/history.jsonl" || fail 'the history does not have what was pressed'
grep -q 'restart_count  *1 after 2 rounds, as the faults imply' "$dir/seen" || fail "it is not judged as a fault: $(grep restart "$dir/seen")"
grep -q '1 of 1 fired' "$dir/seen" || fail "it is not judged as one of the timeline: $(grep fired "$dir/seen")"
[ -e "$run/hand.sock" ] && fail 'a socket is left'

# ---- a run that has ended ----
serve 8 --at 127.0.0.1
gets 200 'the page of a run that has ended' "$url"
timeout 60 curl -sN "${url}events" >"$dir/said" || fail "its events do not end: $?"
grep -q '"words":false,"ended":true' "$dir/said" || fail "its state: $(cat "$dir/said")"
grep -q '"rank":1' "$dir/said" || fail "its lanes: $(cat "$dir/said")"
says 409 'takes nothing by hand' go
port=${url#http://127.0.0.1:}
"$rq" watch "$run" --serve --at "127.0.0.1:${port%%/*}" >"$dir/said" 2>&1
[ $? = 3 ] || fail "the port is taken: $(cat "$dir/said")"
grep -q "${port%%/*}" "$dir/said" || fail "it does not say which port is taken: $(cat "$dir/said")"
kill -TERM "$server"
cat <&8 >"$dir/said"
wait "$server"
rc=$?
[ $rc = 130 ] || fail "SIGTERM: exit $rc"

# ---- what is none of it ----
refused() { # refused TEXT ARGUMENT...
    timeout 60 "$rq" watch "${@:2}" >"$dir/said" 2>&1
    local rc=$?
    [ $rc = 64 ] || fail "watch ${*:2}: exit $rc, not refused"
    grep -q -- "$1" "$dir/said" || fail "watch ${*:2}: $(cat "$dir/said")"
}
refused 'other hosts may reach' "$run" --serve --at 0.0.0.0:8080
refused 'other hosts may reach' "$run" --serve --at '[::]:8080'
refused 'write an address as a number' "$run" --serve --at example.org:80
refused 'where the page of --serve is' "$run" --at 127.0.0.1:80
refused 'two ways to say' "$run" --serve --say go
refused 'there is no run' "$dir/none" --serve
refused 'name the directory of one run' --serve
exit $failed
