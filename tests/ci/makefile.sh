#!/usr/bin/env bash
# A plain `make` builds the programs: whatever rule stands first in the Makefile.
set -u
goal=$(make -pnq NVCC= DEPS=0 MAKEFLAGS= 2>/dev/null | sed -n 's/^\.DEFAULT_GOAL := //p')
[ "$goal" = all ] || { echo "make without a target makes ${goal:-nothing}, not all"; exit 1; }
