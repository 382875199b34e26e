#!/usr/bin/env bash
# All that others send to rankrun (requests to its store, the answers of an etcd, values and host files) fuzzed by
# AFL++ under sanitizers: none may do harm. A minute of it; FUZZ_S=3600 does it for an hour (make fuzz).
# deadline: 86400 s
set -u
. tests/soak/afl.bash
afl_hunt fuzz-input inputs 16000
