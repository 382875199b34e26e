#!/usr/bin/env bash
# Wrong expectations of every scenario.
# deadline: 3600 s
export EVERY=1
exec bash "$(dirname "$0")/../live/wrong_expectations.sh"
