# pair: a job on two nodes that goes on with one of them. To be sourced at the root of the tree.

pair() { # pair NAME STEPS ENTRY: the scenario, on the standard output
    cat <<END
scenario: $1
cluster: {nodes: 2}
job:
  nnodes: "1:2"
  rdzv_conf: {hb: 1s, fence: 20s, hard: 21s, suspect: 23s}
  run: [ranktrain, --steps=$2, --compute-ms=10, --checkpoint-every=10, --collective-timeout=60, "--checkpoint-dir={shared}/ckpt"]
timeline: [$3]
END
}
