#!/usr/bin/env bash
# The runs of tests/live/spawned.sh that make test has no time for.
# deadline: 300 s
SPAWNED=all exec bash tests/live/spawned.sh
