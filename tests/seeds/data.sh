#!/usr/bin/env bash
# S5 5.6, S4 4.3, S2 2.2b: data that is downloaded once, held against its sums, split and made of one size, each part on its node's own
# disk; then trained on by hand-split ranks. A folder of class folders of images, given as the manual does, behind the options;
# its pictures are decoded by loaders, to the same model as without.
set -u
PATH=$(cd "$BIN" && pwd):$PATH
unset RANKTRAIN_OPTIONS
cd "$TMPDIR" || exit 1
command -v python3 >/dev/null || { echo 'python3 is missing'; exit 77; }
fail() { echo "$*"; cat said; exit 1; }
mkfifo port
mkdir site && python3 - <<'PY' || exit 1
import gzip, struct
for name, n in ('train', 960), ('t10k', 96):
    images = bytes((k * 7 + k // 784 * 31) % 256 for k in range(n * 784))
    gzip.open(f'site/{name}-images-idx3-ubyte.gz', 'wb').write(struct.pack('>4I', 0x803, n, 28, 28) + images)
    gzip.open(f'site/{name}-labels-idx1-ubyte.gz', 'wb').write(struct.pack('>2I', 0x801, n) + bytes(k % 10 for k in range(n)))
PY
python3 -u -m http.server --bind 127.0.0.1 --directory site 0 >port 2>served &
server=$!
trap 'kill $server' EXIT
read -r line <port
url=http://127.0.0.1:$(grep -oE 'port [0-9]+' <<<"$line" | cut -d' ' -f2)

# Two nodes with two workers each; both workers of a node ask for the data, one fetches it.
small=(--batch-size=48 --width=1 --epochs=1 --log-every=0)
run=(rankrun --nnodes=2 --nproc_per_node=2 --rdzv_id=data --rdzv_backend=embedded --rdzv_conf=last_call_timeout=300ms)
exec 5< <(exec rankrun store --host=127.0.0.1 --port=0)
store=$!
trap 'kill $server $store' EXIT
read -r -t 180 -u 5 line
agents=()
for k in 1 2; do
    mkdir disk$k
    timeout 300 "${run[@]}" --rdzv_endpoint="127.0.0.1:${line##*:}" --local_addr=127.0.0.$k sh -c \
        "ranktrain prepare --dataset=mnist --from=$url --to=disk$k/mnist --split=node --no-verify &&
         exec ranktrain --mode=manual --data-dir=disk$k/mnist ${small[*]}" >said.$k 2>&1 &
    agents+=($!)
done
for agent in "${agents[@]}"; do wait "$agent" || { cat said.*; fail "a node: exit $?"; }; done
cat said.1 said.2 >said
[ "$(grep -c '/train.images, 480 images$' said)" = 2 ] && [ "$(grep -c 'holds it already' said)" = 2 ] || fail 'not one part for each node'
[ "$(grep -c 'GET /train-images' served)" = 2 ] || fail 'downloaded more than once for a node'
grep -q 'world 4, round [0-9]*, 20 steps' said && grep -q '^model ' said || fail 'not 20 steps of 12 from each rank'
ranktrain prepare --dataset=mnist --from="$url" --to=other >said 2>&1 && fail 'other files than the known ones are taken'
grep -q 'is not the known file: its SHA-256' said || fail 'which sum is wrong'

# imagenet_ddp on a directory: `... --dist-backend ddl --seed 1234 --dist-url env:// DIR`.
ranktrain prepare --dataset=generated --as=folders --samples=192 --to=DIR >said 2>&1 || fail 'class folders'
ddl=(--dist-backend ddl --seed 1234 --dist-url env:// --arch resnet18 --width=2 --batch-size=24 --epochs=1 --log-every=0)
timeout 300 rankrun --accelerators 4 ranktrain "${ddl[@]}" DIR >said 2>&1 || fail "class folders: exit $?"
model=$(grep '^model ' said)
grep -q '192 images of 3x32x32' said || fail 'which images'
timeout 300 rankrun --accelerators 4 ranktrain "${ddl[@]}" --workers 2 DIR >said 2>&1 || fail "with loaders: exit $?"
[ -n "$model" ] && grep -qxF "$model" said && grep -q 'decoded by 2 loaders of each rank' said || fail "with loaders: not $model"
exit 0
