# mutant: programs with a bug of tests/mutants/core planted. To be sourced at the root of the tree.

# The version is in quotes in there, which the file has lost; nothing of the core asks for it.
mutant_flags=$(cat "$OUT/.flags")

mutant_field() { # mutant_field NAME FIELD
    sed -n "1,/^diff /s/^$2: *//p" "tests/mutants/core/$1.patch" | head -n 1
}

# Compiles what the patch touches in a copy of the core, into mutant_objects.
mutant_core() { # mutant_core NAME COPY
    local patch=$PWD/tests/mutants/core/$1.patch copy=$2 root=$PWD touched source
    mutant_objects=()
    mkdir -p "$copy"/{agent,harness} && cp -R agent/core "$copy/agent/" && cp -R harness/sim "$copy/harness/" || return 1
    (cd "$copy" && GIT_CEILING_DIRECTORIES=${copy%/*} git apply -C1 "$patch") || return 1
    mapfile -t touched < <(sed -n 's,^+++ b/,,p' "$patch")
    if [[ "${touched[*]}" == *.h* ]]; then mapfile -t touched < <(cd "$copy" && ls agent/core/*.c); fi
    for source in "${touched[@]}"; do
        mutant_objects+=("$copy/$(basename "$source" .c).o")
        (cd "$copy" && $mutant_flags -w -I"$root" -c -o "$(basename "$source" .c).o" "$source") || return 1
    done
}

# A test's program with it, PROGRAM as make builds it, linked before what was built of the rest.
mutant_link() { # mutant_link PROGRAM NAME COPY TO
    mutant_core "$2" "$3" || return 1
    $mutant_flags -w -o "$4" "$OUT/$1.o" "${mutant_objects[@]}" -Wl,--start-group \
        "$OUT"/lib{reports,harness,faults,agent,base}.a -Wl,--end-group -lfyaml -levent_core -levent_extra -lz -ldl -lm
}

# DIR/rankquake, which simulates it, DIR/rankrun, which runs it, and beside them what both need.
mutant_build() { # mutant_build NAME DIR
    local copy=$2/copy
    mutant_link harness/main "$1" "$copy" "$2/rankquake" || return 1
    $mutant_flags -w -o "$2/rankrun" "$OUT/agent/main.o" "${mutant_objects[@]}" -Wl,--start-group \
        "$OUT"/lib{agent,base}.a -Wl,--end-group -levent_core -levent_extra -ldl || return 1
    cp "$BIN/rankprobe" "$2/" && rm -rf "$copy"
}
