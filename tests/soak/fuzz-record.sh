#!/usr/bin/env bash
# What files, jobs and programs give to the harness, the guard and the job, fuzzed by AFL++ under sanitizers: none may do harm.
# A minute of it; FUZZ_S=3600 does it for an hour (make fuzz).
# deadline: 86400 s
set -u
. tests/soak/afl.bash
afl_hunt fuzz-record records 16000
