#!/usr/bin/env bash
# Every planted bug of tests/mutants, of which make test tries three.
# deadline: 900 s
MUTANTS=$(echo tests/mutants/*.patch) exec bash tests/live/mutants.sh
