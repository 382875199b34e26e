#!/usr/bin/env bash
# A planted bug of tests/mutants is caught by the check that is there for it: a fault that the harness believes of
# itself. tests/soak/mutants.sh tries all.
# deadline: 720 s
MUTANTS=$(echo tests/mutants/harness/fault-does-nothing.patch) \
    QUICK=1 exec bash tests/soak/mutants.sh
