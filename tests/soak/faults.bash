# faults: scenarios made of the faults that there are, each as its own example has it, by family. To be sourced after BIN is
# set. The examples are read once: a program more for every entry would be what a soak waits for.

declare -A example=() family=() effects=()
mapfile -t all_faults < <("$BIN/rankquake" list faults | awk '{ print $1 }')
while IFS='|' read -r name of; do family[$name]=$of; done < <("$BIN/rankquake" list faults --table |
    awk -F' *[|] *' 'NR > 2 { gsub("`", "", $2); print $2 "|" $3 }')
for name in "${all_faults[@]}"; do
    said=$("$BIN/rankquake" explain "$name")
    example[$name]=$(sed -n 's/^ *example: {\(.*\)}$/\1/p' <<<"$said")
    effects[$name]=" $(sed -nE 's/^  ([a-z-]+) .*$/\1/p' <<<"$said" | tr '\n' ' ')"
done

families() { printf '%s\n' "${family[@]}" | sort -u; }
faults_of() { # faults_of FAMILY
    local name
    for name in "${all_faults[@]}"; do [ "${family[$name]}" = "$1" ] && echo "$name"; done
}
has_effect() { [[ ${effects[$1]} =~ \ ($2)\  ]]; } # has_effect FAULT REGEX
# The entry of an example, at the moment that is given instead of its own, on n1 or on n3, which is off, where it switches one
# on. What lasts ends after FOR, and without it at the end of the run.
entry_of() { # entry_of ID FAULT WHEN [FOR]
    local entry=${example[$2]#when: \{*\}, } node=n1
    has_effect "$2" starts-node && node=n3
    [[ $entry =~ (.*on:\ )n[0-9]+(.*) ]] && entry=${BASH_REMATCH[1]}$node${BASH_REMATCH[2]}
    [[ $entry =~ (.*on:\ rank\ )[0-9]+(.*) ]] && entry=${BASH_REMATCH[1]}1${BASH_REMATCH[2]}
    [[ $entry =~ (.*),\ for:\ [0-9a-z.]+(.*) ]] && entry=${BASH_REMATCH[1]}${BASH_REMATCH[2]}
    has_effect "$2" lasting && entry+=${4:+, for: $4}
    echo "{id: $1, when: $3, $entry}"
}
# Four nodes in two racks, the last of them off, and a job that goes on from its checkpoints. What a fault needs besides is
# there for it alone: a database that can be full, a worker's child, an interpreter.
scenario_of() { # scenario_of FILE FAULT STEPS ENTRY...
    local store='' run="ranktrain, --steps=$3, --compute-ms=5, --checkpoint-every=10, \"--checkpoint-dir={shared}/ckpt\""
    [ "$2" = store-full ] && store=', store: etcd, store_quota_mb: 16'
    [ "$2" = worker-child-kill ] && run="sh, -c, \"sleep 600 & exec ranktrain --steps=$3 --compute-ms=5\""
    [ "$2" = worker-gil-hang ] && run="sh, -c, \"PYTHONPATH=$PWD/scenarios/jobs exec python3 $PWD/scenarios/jobs/beating.py $3\""
    cat >"$1" <<END
scenario: $(basename "$1" .yaml)
cluster: {nodes: 4, start: 3, racks: [[n0, n3], [n1, n2]]$store}
job:
  nnodes: "1:4"
  max_restarts: 100
  rdzv_conf: {profile: fast}
  run: [$run]
limits: {total: 30m}
timeline:
END
    printf '  - %s\n' "${@:4}" >>"$1"
}

# A whole host, as far as a harness could have left something there: for soaks, which run alone.
shm_before=$(ls -A /dev/shm | sort)
ports() { ss -Hltnu 2>/dev/null | awk '{ print $1, $5 }' | sort; }
ports_before=$(ports)
host_as_before() {
    nothing_left || return 1
    [ "$(ls -A /dev/shm | sort)" = "$shm_before" ] || { echo "left in /dev/shm: $(ls -A /dev/shm)"; return 1; }
    [ "$(ports)" = "$ports_before" ] || { echo "ports are left: $(ports)"; return 1; }
}
