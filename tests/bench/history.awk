# A run that went well, as long as is wanted: on one node `workers` workers make `steps` steps in each of `rounds` rounds,
# and the last of them is killed at the end of each round but the last, by as many entries of the timeline, or with each=1
# by one. A checkpoint is written every ten steps or, where a round has fewer, at the end of each; three
# are kept.
#
#   awk -v rounds=20 -v steps=1000 -v workers=2 -f tests/bench/history.awk       the history
#   awk -v rounds=20 -v steps=1000 -v workers=2 -v scenario=1 -f ...             the scenario to judge it by
#   awk -v gpus=1 ...                                                            on a GPU for each worker

function put(source, kind, fields) {
    us += 10
    printf "{\"seq\":%d,\"t\":%d000,\"source\":\"%s\",\"kind\":\"%s\"%s}\n", ++seq, us, source, kind, fields
}

function of(w) {
    return sprintf(",\"node\":\"n0\",\"pid\":%d", 1000 + round * workers + w)
}

function say(w, kind, fields) {
    put("job", kind, of(w) sprintf(",\"job_seq\":%d,\"lost\":0", ++told[w]) fields)
}

function env(name, value) {
    return sprintf(",\"%s\":\"%s\"", name, value)
}

function begin(w, resumed, path) {
    put("probe", "worker-start", of(w) sprintf(",\"argv0\":\"train\",\"env\":{\"RANK\":\"%d\"", w) env("LOCAL_RANK", w) \
        env("GROUP_RANK", 0) env("ROLE_RANK", w) env("ROLE_NAME", "default") env("WORLD_SIZE", workers) \
        env("LOCAL_WORLD_SIZE", workers) env("ROLE_WORLD_SIZE", workers) env("GROUP_WORLD_SIZE", 1) \
        env("MASTER_ADDR", "n0") env("MASTER_PORT", 20000 + round) env("TORCHELASTIC_RESTART_COUNT", round - 1) \
        env("TORCHELASTIC_MAX_RESTARTS", rounds) env("TORCHELASTIC_RUN_ID", "long") "}")
    put("probe", "worker-exec", of(w))
    told[w] = 0
}

function save(step, w) {
    say(0, "checkpoint-begin", sprintf(",\"step\":%d", step))
    say(0, "checkpoint-commit", sprintf(",\"step\":%d,\"path\":\"step-%08d\"", step, step))
    kept[step] = round
}

function look(newest, step, list) {
    for (step = newest > 2 * every ? newest - 2 * every : every; step <= newest; step += every)
        list = list (list ? "," : "") sprintf("{\"step\":%d,\"round\":%d,\"path\":\"step-%08d\"}", step, kept[step], step)
    put("disk", "checkpoints", sprintf(",\"round\":%d,\"dir\":\"/shared/ckpt\",\"newest\":%d,\"complete\":[%s],\"damaged\":[]", \
        round, newest, list))
}

# The driver's list: of who computes, when that is given. Once for the whole run: which node has which GPUs.
function devices(at, busy, w, list, open, uuids) {
    if (!gpus) return
    for (w = 0; w < workers; w++) {
        list = list (w ? "," : "") sprintf("{\"index\":%d,\"uuid\":\"GPU-%d\",\"used\":%d,\"hidden\":0,\"processes\":[%s]}", \
            w, w, busy ? 800000000 : 500000000, busy ? sprintf("{\"node\":\"n0\",\"pid\":%d,\"bytes\":300000000}", 1000 + round * workers + w) : "")
        open = open (w ? "," : "") sprintf("{\"node\":\"n0\",\"pid\":%d,\"name\":\"train\"}", 1000 + round * workers + w)
        uuids = uuids (w ? "," : "") sprintf("\"GPU-%d\"", w)
    }
    put("kernel", "devices", sprintf(",\"at\":\"%s\",\"round\":%d,\"devices\":[%s],\"open\":[%s]%s", \
        at, round, list, busy ? open : "", round ? "" : sprintf(",\"nodes\":{\"n0\":[%s]}", uuids)))
}

function train(from, w, step) {
    devices("round-start")
    for (w = 0; w < workers; w++) begin(w)
    for (w = 0; w < workers; w++) {
        say(w, "ready", "")
        if (gpus) say(w, "device", sprintf(",\"uuid\":\"GPU-%d\",\"index\":%d,\"communicator\":\"%016d\"", w, w, round))
        say(w, "resume", sprintf(",\"step\":%d,\"path\":\"%s\"", from, from ? sprintf("step-%08d", from) : ""))
    }
    for (step = from + 1; step <= from + steps; step++) {
        for (w = 0; w < workers; w++)
            say(w, "step", sprintf(",\"step\":%d,\"loss\":%.4f,\"samples\":32,\"shards\":[%d,%d]", step, 1 + 1 / step, 2 * w, 2 * w + 1))
        if (step == 1) put("harness", "steady", "")
        if (step == from + 1) devices("round", 1)
        if (step % every == 0) save(step)
    }
}

function lose(step, fields) {
    fields = each ? sprintf(",\"id\":\"kill\",\"n\":%d", round) : sprintf(",\"id\":\"kill-%d\",\"n\":1", round)
    put("harness", "fault-fired", fields sprintf(",\"fault\":\"worker-kill\",\"on\":[\"n0/%d\"],\"step\":%d,\"lag_ns\":20000,\"held\":true", victim, step))
    put("kernel", "worker-exit", of(victim) ",\"signal\":9")
    put("kernel", "fault-evidence", fields ",\"what\":\"the process ended\"")
    put("harness", "fault-in-force", fields sprintf(",\"fault\":\"worker-kill\",\"ends_node\":false,\"t0\":%d000,\"targets\":[{\"what\":\"worker\",\"name\":\"n0/%d\"%s}]", us - 10, victim, of(victim)))
}

function timeline(r) {
    print "scenario: long\ncluster: {nodes: 1}"
    printf "job: {workers_per_node: %d, max_restarts: %d, run: [train, --checkpoint-every=%d, \"--checkpoint-dir={shared}/ckpt\"]}\n", workers, rounds, every
    print "expect: {restarts: " rounds - 1 ", model: same-as-undisturbed}"
    if (rounds > 1) print "timeline:"
    for (r = 1; r < rounds && !each; r++)
        printf "  - {id: kill-%d, when: {step: %d}, fault: worker-kill, on: rank %d}\n", r, r * steps, victim
    if (rounds > 1 && each)
        printf "  - {id: kill, when: {event: ready}, times: %d, fault: worker-kill, on: rank %d}\n", (rounds > 1000 ? 1000 : rounds - 1), victim
}

BEGIN {
    victim = workers - 1
    every = steps < 10 ? steps : 10
    if (scenario) {
        timeline()
        exit
    }
    model = ",\"model\":\"3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f\""
    put("harness", "run", ",\"v\":1,\"scenario\":\"long\",\"seed\":1,\"launcher\":\"rankrun\",\"control\":false")
    put("harness", "control", model sprintf(",\"label\":\"cpu\",\"step_ns\":%d,\"first_step\":1,\"last_step\":%d,\"cached\":true,\"dir\":\"control\"", workers * 10000, rounds * steps))
    put("harness", "node-up", ",\"node\":\"n0\",\"addr\":\"198.18.0.10\"")
    put("kernel", "agent-start", ",\"node\":\"n0\",\"pid\":100")
    devices("start")
    look(0)
    for (round = 1; round <= rounds; round++) {
        train((round - 1) * steps)
        for (w = 0; w < workers && round == rounds; w++) say(w, "done", model)
        if (round < rounds) lose(round * steps)
        for (w = 0; w < workers; w++)
            if (round == rounds || w != victim) put("kernel", "worker-exit", of(w) (round == rounds ? ",\"code\":0" : ",\"signal\":15"))
        devices("round-end")
        look(round * steps)
    }
    round = 0
    devices("job-end")
    put("kernel", "agent-exit", ",\"node\":\"n0\",\"pid\":100,\"code\":0")
    put("kernel", "leftovers", ",\"node\":\"n0\",\"processes\":[],\"ports\":[],\"shm\":[],\"cgroups\":[]")
    put("harness", "lag", ",\"max_ns\":300000,\"window_ns\":150000000")
    put("harness", "job-end", ",\"why\":\"ended\"")
    put("harness", "node-down", ",\"node\":\"n0\",\"why\":\"end\"")
    put("harness", "health", ",\"left\":[],\"complete\":true,\"cpu_ns\":1000000")
}
