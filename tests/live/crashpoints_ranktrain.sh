#!/usr/bin/env bash
# crashpoints finds nothing in how ranktrain saves, and a bug that is planted there, by its reason and its smallest sequence
# of operations. tests/soak/crashpoints.sh tries all of tests/mutants/savers, and more states.
# deadline: 120 s
STATES=12 SAVERS=tests/mutants/savers/no-directory-fsync.patch exec bash tests/soak/crashpoints.sh
