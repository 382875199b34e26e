#!/usr/bin/env bash
# Histories that nobody has recorded, fuzzed by AFL++ under sanitizers out of those of tests/histories: each is refused or
# judged, and none passes that does not show how all of it ended. A minute of it; FUZZ_S=3600 does it for an hour (make fuzz).
# deadline: 86400 s
set -u
. tests/soak/afl.bash
afl_hunt fuzz-history histories 40000
