#!/usr/bin/env bash
# Planted bugs of tests/mutants are caught by the checks that are there for them: one in each program
# and in what the harness believes of itself. tests/soak/mutants.sh tries all.
# deadline: 720 s
MUTANTS=$(echo tests/mutants/{harness/fault-does-nothing,rankrun/restart-count-off-by-one,ranktrain/newest-not-seen}.patch) \
    QUICK=1 exec bash tests/soak/mutants.sh
