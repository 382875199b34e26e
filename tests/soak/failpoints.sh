#!/usr/bin/env bash
# tests/live/failpoints.sh with a debug build, which it makes.
# deadline: 900 s
set -u
make -s BUILD=debug DEPS=0 NVCC= MAKEFLAGS= -j"$(nproc)" all >"$TMPDIR/make" 2>&1 || { cat "$TMPDIR/make"; exit 1; }
BUILD=debug OUT=build/debug BIN=build/debug/bin bash tests/live/failpoints.sh
