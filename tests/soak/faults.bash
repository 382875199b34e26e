# faults: scenarios made of the faults that there are, each as its own example has it, by family. To be sourced after BIN is
# set; needs a folder $dir.

families() { "$BIN/rankquake" list faults --table | awk -F' *[|] *' 'NR > 2 { print $3 }' | sort -u; }
faults_of() { # faults_of FAMILY
    "$BIN/rankquake" list faults --table | awk -F' *[|] *' -v f="$1" 'NR > 2 && $3 == f { gsub("`", "", $2); print $2 }'
}
example_of() { "$BIN/rankquake" explain "$1" | sed -n 's/^ *example: {\(.*\)}$/\1/p'; }
# The entry of an example, at the moment that is given instead of its own; one that lasts, without its end where $3 is empty.
entry_of() { # entry_of FAULT WHEN [FOR]
    local entry
    entry=$(example_of "$1" | sed -E 's/^when: \{[^}]*\}, //; s/on: n[0-9]+/on: n1/; s/on: rank [0-9]+/on: rank 1/')
    [ -n "${3-}" ] || entry=$(sed -E 's/, for: [0-9a-z.]+//' <<<"$entry")
    echo "{id: $1, when: $2, $entry}"
}
scenario_of() { # scenario_of FILE STEPS ENTRY...: three nodes, one of them off, and a job that goes on from its checkpoints
    {
        cat <<END
scenario: $(basename "$1" .yaml)
cluster: {nodes: 4, start: 3}
job:
  nnodes: "1:3"
  max_restarts: 100
  rdzv_conf: {profile: fast}
  run: [ranktrain, --steps=$2, --compute-ms=5, --checkpoint-every=10, "--checkpoint-dir={shared}/ckpt"]
limits: {total: 2m}
timeline:
END
        printf '  - %s\n' "${@:3}"
    } >"$1"
}
