#!/usr/bin/env bash
# A plain `make` builds the programs, whatever rule stands first in the Makefile; and an archive holds what belongs to it, also
# when that became less without anything newer.
set -u
goal=$(make -pnq NVCC= DEPS=0 MAKEFLAGS= 2>/dev/null | sed -n 's/^\.DEFAULT_GOAL := //p')
[ "$goal" = all ] || { echo "make without a target makes ${goal:-nothing}, not all"; exit 1; }
out=$TMPDIR/out bad=0
holds() { # holds OBJECT...: the archive when these belong to it
    make -s NVCC= DEPS=0 MAKEFLAGS= OUT="$out" OBJ.base="${*/#/$out/base/}" "$out/libbase.a" >"$TMPDIR/said" 2>&1 ||
        { cat "$TMPDIR/said"; bad=1; }
    [ "$(ar t "$out/libbase.a" | paste -sd' ')" = "$*" ] || { echo "libbase.a of $* holds $(ar t "$out/libbase.a" | paste -sd' ')"; bad=1; }
}
holds err.o utf8.o
holds err.o
exit $bad
