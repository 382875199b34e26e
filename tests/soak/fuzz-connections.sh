#!/usr/bin/env bash
# What clients send to the embedded store, down to the bytes on their connections, fuzzed by AFL++ under sanitizers: none
# may do harm, or keep others from being served. A minute of it; FUZZ_S=3600 does it for an hour (make fuzz).
#
# What is searched beside our own code is the system's libevent, of which the fuzzer sees nothing. EVENT=DIR names a folder
# with a libevent_core.a and libevent_extra.a that were built by the fuzzer's compiler, of libevent's source:
#   CC=afl-clang-fast CFLAGS='-O1 -g -fsanitize=address,undefined' ./configure --disable-shared --disable-openssl && make
# deadline: 86400 s
set -u
. tests/soak/afl.bash
rm -f build/fuzz-asan/fuzz-connections # may be linked with another libevent
afl_hunt fuzz-connections connections 8000 ${EVENT:+"LDFLAGS=-L$(realpath "$EVENT")"}
