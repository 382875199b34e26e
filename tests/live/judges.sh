#!/usr/bin/env bash
# A planted bug that breaks I1, one that breaks I4: both judges of a simulated run see them. tests/soak/judges.sh
# tries more of it.
# deadline: 120 s
set -u
SEEDS=0 RUNS=60 MUTANTS='acks-not-waited-for cost-twice' bash tests/soak/judges.sh
