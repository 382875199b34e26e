#!/usr/bin/env bash
# ranktrain prepare: a folder of pictures and files behind a URL become what is trained on, once; what is damaged, not
# the known file or interrupted leaves nothing behind.
set -u
unset RANKTRAIN_OPTIONS
cd "$BIN" && PATH=$PWD:$PATH && cd - >/dev/null || exit 1
pictures=$PWD/$OUT/tests/scenarios/jobs/ranktrain/data/spawn_pictures
cd "$TMPDIR" || exit 1
command -v python3 >/dev/null || { echo 'python3 is missing'; exit 77; }
fail() { echo "$*"; cat said; exit 1; }
files() { ls -A "$1" 2>/dev/null | tr '\n' ' '; }
says() { grep -q -- "$1" said || fail "nowhere: $1"; }

# A folder, on the disks of two nodes; the second of two at once finds it done. One network ends with the same weights
# on what was prepared and on the files themselves.
"$pictures" pictures 3 40
ranktrain prepare --dataset=folder --from=pictures --to=whole >said 2>&1 &
ranktrain prepare --dataset=folder --from=pictures --to=whole >also 2>&1 || fail 'the second fails'
wait $! || fail 'the first fails'
cat also >>said
says 'holds it already'
says 'train.images, 120 images'
[ "$(files whole)" = '.prepare.lock test.images train.images ' ] || fail "left: $(files whole)"
train() { ranktrain --network=resnet18 --width=2 --batch-size=24 --steps=3 --log-every=0 "$@" 2>&1; }
train --data-dir=whole >said || fail 'whole'
train pictures >>said || fail pictures
[ "$(grep -c '^model' said)" = 2 ] && [ "$(grep '^model' said | sort -u | wc -l)" = 1 ] || fail 'two models'
says '120 images of 3x32x32'
rm pictures/train/class1/0003.png
for node in 0 1; do
    GROUP_RANK=$node GROUP_WORLD_SIZE=2 ranktrain prepare --dataset=folder --from=pictures --to=node$node --split=node \
        --image-size=16 >said 2>&1 || fail "node $node"
done
says 'train.images, 59 images'
train --data-dir=node0 >said || fail 'part 0'
says '59 images of 3x16x16, part 0 of 2'
rm -r pictures/train/class2 && mkdir pictures/train/class2
ranktrain prepare --dataset=folder --from=pictures --to=bad >said 2>&1 && fail 'an empty class is taken'
says 'class2 has no .jpg'

# As class folders of PNG files, for other programs: the same images, and one set or none of it. They are trained on as they are,
# and prepared again to the bytes that they were made of.
ranktrain prepare --dataset=generated --as=folders --samples=96 --to=folders >said 2>&1 || fail 'as folders'
says 'folders/train, 96 images'
[ "$(find folders/train folders/val -name '*.png' | wc -l)" = 192 ] && [ "$(ls folders/train)" = "$(printf '%03d\n' {0..9})" ] ||
    fail "folders: $(ls folders folders/train)"
ranktrain prepare --dataset=generated --as=folders --samples=96 --to=folders >said 2>&1 && says 'holds it already'
train folders >said || fail 'on folders'
says '96 images of 3x32x32'
ranktrain prepare --dataset=folder --from=folders --to=again --image-size=28 >said 2>&1 || fail 'folders prepared'
python3 - <<'PY' >said 2>&1 || fail 'other pixels than those of the data set'
import glob, os, struct, zlib
paths = sorted(glob.glob('folders/train/*/*.png'))
packed = open('again/train.images', 'rb').read()
for k, path in enumerate(paths):
    png = open(path, 'rb').read()
    at = png.index(b'IDAT')
    rows = zlib.decompress(png[at + 4:at + 4 + struct.unpack('>I', png[at - 4:at])[0]])
    grey = b''.join(rows[r * 29 + 1:r * 29 + 29] for r in range(28))
    first = 4096 + k * 3 * 784
    assert packed[first:first + 784 * 3] == grey * 3, path
PY
ranktrain prepare --dataset=generated --samples=96 --to=x >said 2>&1
[ $? = 64 ] && says 'only with --as=folders'

# By URL: files that are not the known ones, a server that stands still until the fetcher is dead, and one that does not.
mkfifo port stands
command -v openssl >/dev/null && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout server.key -out server.pem \
    -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost >said 2>&1
python3 - <<'PY' >port 2>server &
import http.server, os, ssl, struct, sys, threading
def idx(n, images):
    return struct.pack('>4I', 0x803, n, 28, 28) + bytes(n * 784) if images else struct.pack('>2I', 0x801, n) + bytes(n)
class Files(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = idx(960 if 'train' in self.path else 96, 'images' in self.path)
        if not self.path.startswith(('/slow/', '/files/', '/short/', '/magic/', '/cut/')):
            return self.send_error(404)
        if self.path.startswith('/magic/') and 'train-images' in self.path:
            body = b'\0\0\x08\x07' + body[4:]
        if self.path.startswith('/short/') and 'train-images' in self.path:
            body = body[:5000]
        self.send_response(200)
        self.send_header('Content-Length', str(len(body) + self.path.startswith('/cut/')))
        self.end_headers()
        if self.path.startswith('/slow/') and 't10k-labels' in self.path:
            self.wfile.write(body[:50])
            open('stands', 'w').close()
            self.rfile.read(1)
            return
        self.wfile.write(body)
    def log_message(self, *a):
        pass
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Files)
tls = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Files)
if os.path.exists('server.pem'):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain('server.pem', 'server.key')
    tls.socket = context.wrap_socket(tls.socket, server_side=True)
    threading.Thread(target=tls.serve_forever, daemon=True).start()
print(s.server_port, tls.server_port, flush=True)
s.serve_forever()
PY
server=$!
trap 'kill $server' EXIT
read -r port tls_port <port
url=http://127.0.0.1:$port
refused() { # refused URL WHAT: with a sentence, and nothing is left of it
    ranktrain prepare --dataset=mnist --from="$1" --to=refused --no-verify >said 2>&1 && fail "$1 is taken"
    says "$2"
    [ -z "$(find refused -name 'train*' -o -name '.prepare.[is]*')" ] || fail "$1 left: $(files refused)"
}
refused "$url/magic" 'train-images-idx3-ubyte.*at byte 0'
refused "$url/short" 'train-images-idx3-ubyte.*cut short'
refused "$url/cut" '/cut/train-images-idx3-ubyte.gz: '
refused "http://127.0.0.1:1" '127.0.0.1:1.*refused'
if [ -e server.pem ]; then # a server that nobody whom the system trusts has signed
    tls=https://localhost:$tls_port/files
    refused "$tls" 'name who signs the server.s certificate by --cacert=FILE'
    refused "https://127.0.0.1:$tls_port/files" "https://127.0.0.1:$tls_port/files/train-images-idx3-ubyte.gz: "
    CURL_CA_BUNDLE=server.key refused "$tls" 'certificates in PEM'
    CURL_CA_BUNDLE=server.pem refused "https://127.0.0.1:$tls_port/files" "127.0.0.1"
    for by in CURL_CA_BUNDLE=server.pem CURL_CA_BUNDLE=; do
        env "$by" ranktrain prepare --dataset=mnist --from="$tls" --to="tls-$by" --no-verify $([ "$by" = CURL_CA_BUNDLE= ] && echo --cacert=server.pem) \
            >said 2>&1 || fail "https, $by"
        says "fetched $tls/t10k-labels-idx1-ubyte.gz, 104 bytes"
        says 'train.images, 960 images'
    done
fi
ranktrain prepare --dataset=mnist --from="$url/files" --to=mnist >said 2>&1 && fail 'unknown files are taken'
says 'is not the known file: its SHA-256, unpacked, is'
[ "$(files mnist)" = '.prepare.lock ' ] || fail "left: $(files mnist)"
ranktrain prepare --dataset=mnist --from="$url/nowhere" --to=mnist >said 2>&1 && fail 'a 404 is taken'
says "$url/nowhere/train-images-idx3-ubyte.gz: .*404"
ranktrain prepare --dataset=mnist --from="$url/slow" --to=mnist --no-verify >said 2>&1 &
slow=$!
read -r <stands
kill -9 $slow && wait $slow 2>/dev/null
ls mnist | grep -q images && fail "half of it: $(files mnist)"
ranktrain --dataset=mnist --data-dir=mnist >said 2>&1 && fail 'half of it is trained on'
says 'mnist has neither train-images-idx3-ubyte nor'
ranktrain prepare --dataset=mnist --from="$url/files/" --to=mnist --no-verify >said 2>&1 || fail 'not after a death'
[ "$(files mnist)" = '.prepare.lock test.images train.images ' ] || fail "left: $(files mnist)"
ranktrain --dataset=mnist --data-dir=mnist --epochs=1 >said 2>&1 || fail mnist
says '^accuracy 1.0000'

# A disk that has rotted is noticed when the image is read; a file that is cut short at once.
printf x | dd of=mnist/train.images bs=1 seek=200000 conv=notrunc 2>/dev/null
ranktrain --dataset=mnist --data-dir=mnist --epochs=1 >said 2>&1 && fail 'a damaged image is trained on'
says 'step 0: mnist/train.images is damaged: image 249, at byte 199312\|mnist/train.images is damaged: image 249'
truncate -s 70000 mnist/test.images
ranktrain --dataset=mnist --data-dir=mnist --epochs=1 >said 2>&1 && fail 'half a file is taken'
says 'mnist/test.images .* at byte 70000'
for bad in '--split=2/2' '--split=x' '--dataset=x' '--tu=x' ''; do
    ranktrain prepare ${bad:+--to=x} $bad >said 2>&1
    [ $? = 64 ] || fail "$bad"
done
exit 0
