#!/usr/bin/env bash
# Scenarios of strangers, with what they include, fuzzed by AFL++ under sanitizers out of all that we have: each is refused
# in sentences that a terminal can show, or loaded, and loaded again as printed. A minute of it; FUZZ_S=3600 does it for an
# hour (make fuzz).
# deadline: 86400 s
set -u
. tests/soak/afl.bash
afl_hunt fuzz-scenario scenarios 40000
