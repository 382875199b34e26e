#!/usr/bin/env bash
# A node helper loses its harness in each of five ways a hundred times: its input is closed, nothing is heard, the helper is killed, its
# keeper is, and what reached them is. Nothing of what it had started is left, though that had left its session and its parent.
# deadline: 900 s
set -u
bin=${BIN:-build/bin}
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
ENDS=${ENDS:-100} python3 tests/live/carrier.py "ends-$$" "$TMPDIR" "$(realpath "$bin/rankquake-node")"
