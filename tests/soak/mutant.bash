# mutant: programs with a bug of tests/mutants/core planted. To be sourced at the root of the tree.

# The version is in quotes in there, which the file has lost; nothing of the core asks for it.
mutant_flags=$(cat "$OUT/.flags")

mutant_field() { # mutant_field NAME FIELD
    sed -n "1,/^diff /s/^$2: *//p" "tests/mutants/core/$1.patch" | head -n 1
}

# Compiles what the patch touches in a copy of the core, and links it before what was built of the rest:
# DIR/rankquake, which simulates it, DIR/rankrun, which runs it, and beside them what both need.
mutant_build() { # mutant_build NAME DIR
    local patch=$PWD/tests/mutants/core/$1.patch copy=$2/copy root=$PWD objects=() source
    mkdir -p "$copy/agent" && cp -R agent/core "$copy/agent/" || return 1
    (cd "$copy" && GIT_CEILING_DIRECTORIES=${copy%/*} git apply -C1 "$patch") || return 1
    mapfile -t touched < <(sed -n 's,^+++ b/,,p' "$patch")
    if [[ "${touched[*]}" == *.h* ]]; then mapfile -t touched < <(cd "$copy" && ls agent/core/*.c); fi
    for source in "${touched[@]}"; do
        objects+=("$copy/$(basename "$source" .c).o")
        (cd "$copy" && $mutant_flags -w -I"$root" -c -o "$(basename "$source" .c).o" "$source") || return 1
    done
    $mutant_flags -w -o "$2/rankquake" "$OUT/harness/main.o" "${objects[@]}" -Wl,--start-group \
        "$OUT"/lib{reports,harness,faults,agent,base}.a -Wl,--end-group -lfyaml -levent_core || return 1
    $mutant_flags -w -o "$2/rankrun" "$OUT/agent/main.o" "${objects[@]}" -Wl,--start-group \
        "$OUT"/lib{agent,base}.a -Wl,--end-group -levent_core -levent_extra -ldl || return 1
    cp "$BIN/rankprobe" "$2/" && rm -rf "$copy"
}
