# plant: puts a bug into built programs by linking them anew with one other object, and takes it out again. To be sourced by
# ci/mutate. A copy is a tree in which "make all test-programs" has run; what is linked there is linked as make does it, but
# without debug information, which is most of the time that a linker takes.

# The flags that make compiles with in a tree, without a cache for what is compiled once.
plant_flags() { # plant_flags TREE
    sed "s/^ccache //; s/ -DRANKQUAKE_VERSION=[^ ]*//; s/ -g / -g0 /" "$1/build/release/.flags"
}

# "PROGRAM<tab>COMMAND": how make links each program that has objects of ours from archives.
plant_links() { # plant_links TREE
    make -nB -C "$1" --no-print-directory BUILD=release DEPS=0 NVCC= V=1 all test-programs 2>/dev/null | sed ':a; /\\$/ { N; s/\\\n//; ta }' |
        sed -nE '/ -c |-shared/ d; /lib[a-z]+\.a / s,^(.* -o (build/(bin|release/tests)/[^ ]+) .*)$,\2\t\1,p'
}
# "SYMBOL PROGRAM" for each function and variable of ours that others see; i: one of which the processor chooses.
plant_symbols() { # plant_symbols TREE LINKS
    cut -f 1 "$2" | (cd "$1" && while read -r program; do
        nm -g --defined-only "$program" 2>/dev/null | sed -n "s,.* [BDRTVi] \(.*\),\1 $program,p"
    done)
}
# Who holds the object of a source, or includes that.
plant_holders() { # plant_holders TREE SYMBOLS FILE
    local test
    {
        awk 'NR == FNR { own[$1]; next } $1 in own { print $2 }' \
            <(nm -g --defined-only "$1/build/release/${3%.c}.o" | awk '$2 ~ /[BDRTVi]/ { print $3 }') "$2"
        for test in $(cd "$1" && grep -rlF "#include \"$3\"" tests); do echo "build/release/${test%.c}"; done
    } | sort -u
}
# Compiles a source that stands in for a file; without lines and names of files in the object.
plant_compile() { # plant_compile TREE FILE SOURCE OBJECT
    (cd "$1" && $(plant_flags .) '-DRANKQUAKE_VERSION="0"' -w -iquote "${2%/*}" -fmacro-prefix-map="$3=$2" -c -o "$4" "$3") 2>/dev/null
}
# The same so that reads and writes beyond what is there, or of what was given back, end the program.
plant_compile_watched() { # plant_compile_watched TREE FILE SOURCE OBJECT
    (cd "$1" && $(plant_flags .) '-DRANKQUAKE_VERSION="0"' -w "${plant_watched[@]}" -O1 -iquote "${2%/*}" -c -o "$4" "$3") 2>/dev/null
}
plant_watched=(-fsanitize=address,undefined -fno-sanitize-recover=all)
# The object of what lists at the end of a program which descriptors it has left open (held/held.c), and of an arena of which each
# piece has its own bounds (scenarios/watched/bounds.c).
plant_compile_held() { # plant_compile_held TREE OBJECT
    (cd "$1" && $(plant_flags .) -D_GNU_SOURCE -r -nostdlib -o "$2" tests/mutate/held/held.c scenarios/watched/bounds.c)
}
# Links a unit test under another name, with the runtime of the sanitizers in it: it fails too where memory or descriptors are not
# given back. Only the file's own code is watched at each access; of all else memory is, as it comes from the same allocator.
plant_watcher() { # plant_watcher COPY LINKS FILE OBJECT SOURCE PROGRAM NAME HELD
    local command own=${6/build\/release/.}.c object=$4
    command=$(awk -F '\t' -v program="$6" '$1 == program { print $2; exit }' "$2")
    [ -n "$command" ] || return 1
    echo "$7" >>"$1.changed"
    if grep -qsF "#include \"$3\"" "$1/$own"; then
        mkdir -p "$1.over/${3%/*}" && cp "$5" "$1.over/$3" || return 1
        object=$1.over/own.o
        (cd "$1" && $(plant_flags .) '-DRANKQUAKE_VERSION="0"' -w "${plant_watched[@]}" -O1 -iquote "$1.over" -c -o "$object" "$own") 2>/dev/null || return 1
        command=${command/ $6.o / }
    fi
    command=${command#ccache }
    (cd "$1" && eval "${command/ -o $6 / -fsanitize=address,undefined -Wl,-S -o $7.planted $object $8 }") >"$1.link" 2>&1 && mv -f "$1/$7.planted" "$1/$7"
}
# Links one program with an object in place of the file's; what is changed stands in COPY.changed before it is.
plant_in() { # plant_in COPY LINKS FILE OBJECT SOURCE PROGRAM
    local command own=${6/build\/release/.}.c object=$4
    command=$(awk -F '\t' -v program="$6" '$1 == program { print $2; exit }' "$2")
    [ -n "$command" ] || return 0
    echo "$6" >>"$1.changed"
    if grep -qsF "#include \"$3\"" "$1/$own"; then # compiled anew, as it holds the source itself
        mkdir -p "$1.over/${3%/*}" && cp "$5" "$1.over/$3" || return 1
        object=$1.over/own.o
        (cd "$1" && $(plant_flags .) '-DRANKQUAKE_VERSION="0"' -w -iquote "$1.over" -c -o "$object" "$own") 2>/dev/null || return 1
        command=${command/ $6.o / }
    fi
    command=${command#ccache }
    (cd "$1" && eval "${command/ -o $6 / -Wl,-S -o $6.planted $object }") >"$1.link" 2>&1 && mv -f "$1/$6.planted" "$1/$6"
}
# The same with the objects of several files, where the program holds no source itself.
plant_objects() { # plant_objects COPY LINKS PROGRAM OBJECT...
    local command
    command=$(awk -F '\t' -v program="$3" '$1 == program { print $2; exit }' "$2")
    [ -n "$command" ] || return 0
    echo "$3" >>"$1.changed"
    command=${command#ccache }
    (cd "$1" && eval "${command/ -o $3 / -Wl,-S -o $3.planted ${*:4} }") >"$1.link" 2>&1 && mv -f "$1/$3.planted" "$1/$3"
}
# The programs of a copy as they were: they are the same files as in the tree it was made of.
plant_undo() { # plant_undo TREE COPY
    local program
    [ -e "$2.changed" ] || return 0
    sort -u "$2.changed" | while read -r program; do
        rm -f "$2/$program.planted"
        [[ $program != *.watched-* ]] || { rm -f "$2/$program"; continue; }
        ln -f "$1/$program" "$2/$program" || exit 1
    done && rm -rf "$2.changed" "$2.over"
}
