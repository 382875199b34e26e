#include "faults/fault.h"
#include "faults/mechanism/wire_rules.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define EACH(f)                                                                                    \
    for (size_t i_ = 0; faults[i_]; i_++)                                                          \
        for (const struct fault *f = faults[i_]; f; f = NULL)

/* Says whose file it is, for whoever adds one. */
static void assert_of(const struct fault *f, bool good, const char *what) {
    char file[64];
    snprintf(file, sizeof(file), "%s", f->name);
    for (char *c = file; *c; c++)
        *c = *c == '-' ? '_' : *c;
    if (!good)
        fail_msg("%s.c below faults/: %s", file, what);
}

static void test_the_table_is_in_alphabetical_order(void **state) {
    (void)state;
    for (size_t i = 1; faults[0] && faults[i]; i++)
        assert_true(strcmp(faults[i - 1]->name, faults[i]->name) < 0);
}

static void test_every_fault_says_all_about_itself(void **state) {
    (void)state;
    EACH(f) {
        assert_of(f, f->summary && f->undo && f->blast, ".summary, .undo or .blast is missing");
        assert_of(f, f->example && strstr(f->example, f->name), ".example does not show it");
        assert_of(f, f->params, ".params is missing; without arguments it is {{0}}");
        assert_of(f, f->targets, ".targets is missing: whom it may be aimed at");
        assert_of(f, f->evidence, ".evidence is missing: what shows that it was felt");
        for (const struct fault_param *p = f->params; p->name; p++)
            assert_of(f, p->type && p->default_text && p->text,
                      ".params lacks a type, default or text");
    }
}

static void test_effects_say_what_becomes_of_whom(void **state) {
    const unsigned worker = EFFECT_ENDS_WORKER | EFFECT_STOPS_WORKER | EFFECT_HINDERS_WORKER,
                   told = EFFECT_LOUD | EFFECT_SILENT;
    const unsigned node =
        EFFECTS_TAKE_AGENT | EFFECT_STARTS_NODE | EFFECT_STALLS_NODE | EFFECT_HINDERS_NODE;
    (void)state;
    EACH(f) {
        assert_of(f, f->effects & ~(told | EFFECT_LASTING), ".effects do nothing to the world");
        assert_of(f, (f->effects & told) != told, ".effects are loud and silent");
        assert_of(f, f->effects & (told | EFFECT_STARTS_NODE), ".effects are not loud nor silent");
        assert_of(f, !fault_has(f, worker) || f->targets & TARGET_WORKER,
                  ".effects are on a worker, .targets are not");
        assert_of(f, !fault_has(f, node) || !(f->targets & TARGET_WORKER),
                  ".effects are on a node, .targets are workers");
        assert_of(f,
                  !(f->evidence & EVIDENCE(target_exit)) ||
                      fault_has(f, EFFECT_ENDS_WORKER | EFFECTS_TAKE_AGENT | EFFECT_ENDS_STORE),
                  ".evidence is an end, .effects end nobody");
        assert_int_equal(fault_effects(f->name), f->effects);
        assert_int_equal(fault_effects(fault_that(f->effects)), f->effects);
    }
    assert_int_equal(fault_effects("worker"), 0);
}

static void test_effects_are_read_as_they_were_written(void **state) {
    (void)state;
    for (unsigned set = 0; set < 1U << EFFECTS_N; set += 977) {
        struct arena a = {0};
        struct buf text = {0};
        struct json_writer w = {.out = &text};
        json_object(&w, NULL);
        effects_put(&w, "effects", set);
        json_end_object(&w);
        const struct json *j = json_parse(&a, buf_str(&text), text.len, NULL);
        assert_int_equal(effects_take(json_get(j, "effects")), set);
        buf_fini(&text);
        arena_fini(&a);
    }
    struct arena a = {0};
    static const char later[] = "[\"ends-node\",\"of-a-later-version\",7]";
    assert_int_equal(effects_take(json_parse(&a, later, sizeof(later) - 1, NULL)),
                     EFFECT_ENDS_NODE);
    assert_int_equal(effects_take(NULL), 0);
    arena_fini(&a);
}

static void test_what_lasts_can_be_undone_and_what_does_not_cannot(void **state) {
    (void)state;
    EACH(f) {
        assert_of(f, f->inject, ".inject is missing");
        assert_of(f, !fault_has(f, EFFECT_LASTING) == !f->recover,
                  "what has EFFECT_LASTING has a .recover, and nothing else has");
    }
}

static void test_a_fault_is_found_by_its_name(void **state) {
    (void)state;
    assert_string_equal(fault_find("worker-kill")->name, "worker-kill");
    assert_null(fault_find("worker"));
    assert_null(fault_find(""));
}

static void test_an_argument_not_given_has_its_default(void **state) {
    (void)state;
    struct fault_arg v[] = {{"signal", "SIGTERM"}};
    struct fault_args a = {.v = v, .n = 1};
    assert_string_equal(fault_arg(&a, "signal", "SIGKILL"), "SIGTERM");
    assert_string_equal(fault_arg(&a, "disk", "kept"), "kept");
    assert_string_equal(fault_arg(NULL, "disk", "kept"), "kept");
}

/* Calls of a node, in the order in which a fault makes them. */
static char calls[64];
static int fail_at;

static int call(const char *what) {
    strcat(calls, what);
    return (int)strlen(calls) == fail_at ? -EIO : 0;
}
static int fake_kill(void *node, struct err *err) {
    (void)node, (void)err;
    return call("K");
}
static int fake_silence(void *node, bool on, struct err *err) {
    (void)node, (void)err;
    return call(on ? "S" : "s");
}
static int fake_destroy(void *node, struct err *err) {
    (void)node, (void)err;
    return call("D");
}
static int fake_start(void *node, bool fresh, struct err *err) {
    (void)node, (void)err;
    return call(fresh ? "F" : "B");
}

static char parted[128];
static unsigned parted_planes;
static int fake_part(void *node, const char *groups, const struct impairment *how, bool on,
                     struct err *err) {
    (void)node, (void)err;
    strncpy(parted, groups, sizeof(parted) - 1);
    parted_planes = (unsigned)how->planes;
    return call(on ? "P" : "p");
}

static struct impairment impaired;
static size_t impaired_n;
static int fake_impair(void *node, const char *groups, const struct impairment *how, size_t n,
                       bool on, struct err *err) {
    (void)node, (void)err;
    impaired_n = n;
    strncpy(parted, groups, sizeof(parted) - 1);
    impaired = how[n - 1];
    return call(on ? "I" : "i");
}

static int forget_says;
static int fake_forget(void *node, unsigned planes, struct err *err) {
    (void)node, (void)err;
    parted_planes = planes;
    call("C");
    return forget_says;
}

static struct clock_shift shifted;
static int fake_shift(void *node, const struct clock_shift *how, struct err *err) {
    (void)node, (void)err;
    if (how)
        shifted = *how;
    return call(how ? "T" : "t");
}

static const struct node_ops fake = {.shift_clock = fake_shift,
                                     .kill = fake_kill,
                                     .silence = fake_silence,
                                     .part = fake_part,
                                     .impair = fake_impair,
                                     .forget_connections = fake_forget,
                                     .destroy_sockets = fake_destroy,
                                     .start = fake_start};

static int play(const char *name, const struct fault_args *a, struct err *err) {
    struct target t = {.kind = TARGET_NODE, .name = "n0", .pidfd = -1, .ops = &fake};
    calls[0] = 0;
    return fault_find(name)->inject(&t, a, err);
}

/* Without a process to wait for the fault stops there: the order until then is what matters. */
static void test_a_power_cut_is_silent_before_it_kills(void **state) {
    (void)state;
    struct err err;
    assert_true(play("node-poweroff", NULL, &err) < 0);
    assert_string_equal(calls, "SK");
    assert_true(play("node-kill", NULL, &err) < 0);
    assert_string_equal(calls, "K");
}

static void test_a_node_that_cannot_be_silenced_is_not_killed(void **state) {
    (void)state;
    struct err err;
    fail_at = 1;
    assert_int_equal(play("node-poweroff", NULL, &err), -EIO);
    assert_string_equal(calls, "S");
    fail_at = 0;
}

static void test_a_node_starts_with_its_disk_or_a_fresh_one(void **state) {
    (void)state;
    struct err err;
    struct fault_arg fresh[] = {{"disk", "fresh"}}, odd[] = {{"disk", "old"}};
    assert_int_equal(play("node-start", NULL, &err), 0);
    assert_string_equal(calls, "B");
    assert_int_equal(play("node-start", &(struct fault_args){.v = fresh, .n = 1}, &err), 0);
    assert_string_equal(calls, "F");
    assert_int_equal(play("node-start", &(struct fault_args){.v = odd, .n = 1}, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "old"));
}

static void test_a_worker_is_not_sent_what_is_no_signal(void **state) {
    (void)state;
    struct err err;
    struct fault_arg v[] = {{"signal", "SIGNONE"}};
    struct target t = {.kind = TARGET_WORKER, .name = "n0/0", .pidfd = -1};
    int (*inject)(const struct target *, const struct fault_args *, struct err *) =
        fault_find("worker-kill")->inject;
    assert_int_equal(inject(&t, &(struct fault_args){.v = v, .n = 1}, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "SIGNONE"));
    assert_int_equal(inject(&t, NULL, &err), -ESRCH);
    assert_non_null(strstr(err.msg, "n0/0"));
}

static void test_a_partition_is_of_the_target_and_all_others_or_of_the_groups(void **state) {
    (void)state;
    struct err err;
    struct fault_arg v[] = {{"groups", "n0,n1|n2"}, {"planes", "store,data"}};
    struct target t = {.kind = TARGET_NODE, .name = "n0", .pidfd = -1, .ops = &fake};
    assert_int_equal(play("net-partition", NULL, &err), 0);
    assert_string_equal(parted, "n0|*");
    assert_int_equal(parted_planes, PLANE_ALL);
    assert_int_equal(play("net-partition", &(struct fault_args){.v = v, .n = 2}, &err), 0);
    assert_string_equal(parted, "n0,n1|n2");
    assert_int_equal(parted_planes, PLANE_STORE | PLANE_DATA);
    assert_string_equal(calls, "P");
    assert_int_equal(fault_find("net-partition")->recover(&t, NULL, &err), 0);
    assert_string_equal(calls, "Pp");
}

static void test_a_delay_is_taken_away_as_it_was_set(void **state) {
    (void)state;
    struct err err;
    struct fault_arg v[] = {{"delay", "20ms"}, {"jitter", "5ms"}, {"planes", "data"}};
    const struct fault_args a = {.v = v, .n = 3, .seed = 9};
    struct target t = {.kind = TARGET_NODE, .name = "n0", .pidfd = -1, .ops = &fake};
    assert_int_equal(play("net-delay", &a, &err), 0);
    assert_string_equal(parted, "n0|*");
    struct impairment set = impaired;
    assert_int_equal(set.planes, PLANE_DATA);
    assert_int_equal(set.delay_ns, 20000000);
    assert_int_equal(set.jitter_ns, 5000000);
    assert_int_equal(set.seed, 9);
    assert_int_equal(fault_find("net-delay")->recover(&t, &a, &err), 0);
    assert_string_equal(calls, "Ii");
    assert_memory_equal(&set, &impaired, sizeof(set));
    assert_int_equal(play("net-delay", NULL, &err), 0);
    assert_int_equal(impaired.delay_ns, 100000000);
    assert_int_equal(impaired.planes, PLANE_ALL);
}

static void test_a_profile_is_one_impairment_a_step_each_until_the_next(void **state) {
    (void)state;
    struct err err;
    const struct fault_arg base[] = {{"planes", "data"}},
                           first[] = {{"delay", "1ms"}, {"planes", "data"}},
                           last[] = {{"delay", "9ms"}, {"planes", "data"}};
    const struct fault_step steps[] = {{0, first, 2}, {5000, last, 2}};
    const struct fault_args a = {.v = base, .n = 1, .steps = steps, .steps_n = 2};
    assert_int_equal(play("net-delay", &a, &err), 0);
    assert_int_equal(impaired_n, 2);
    assert_true(impaired.from_ns == 5000 && impaired.until_ns == 0);
    assert_true(impaired.delay_ns == 9000000 && impaired.planes == PLANE_DATA);
    const struct fault_args one = {.v = base, .n = 1, .steps = steps, .steps_n = 1};
    assert_int_equal(play("net-delay", &one, &err), 0);
    assert_true(impaired_n == 1 && impaired.delay_ns == 1000000 && !impaired.until_ns);
}

static void test_peers_are_kept_from_hearing_before_connections_are_forgotten(void **state) {
    (void)state;
    struct err err;
    struct fault_arg v[] = {{"planes", "store"}, {"quiet", "true"}};
    const struct fault_args a = {.v = v, .n = 2};
    struct target t = {.kind = TARGET_NODE, .name = "n0", .pidfd = -1, .ops = &fake};
    forget_says = 3;
    assert_int_equal(play("net-half-open", NULL, &err), 0);
    assert_string_equal(calls, "IC");
    assert_string_equal(parted, "n0|*");
    assert_int_equal(parted_planes, PLANE_ALL);
    assert_int_equal(impaired.hushes, 1);
    assert_int_equal(impaired.direction, DIRECTION_FROM);
    assert_int_equal(play("net-half-open", &a, &err), 0);
    assert_int_equal(parted_planes, PLANE_STORE);
    assert_int_equal(impaired.hushes, 2);
    assert_int_equal(fault_find("net-half-open")->recover(&t, &a, &err), 0);
    assert_string_equal(calls, "ICi");
    forget_says = -EOPNOTSUPP;
    assert_int_equal(play("net-half-open", NULL, &err), -EOPNOTSUPP);
    assert_string_equal(calls, "ICi");
}

static void test_a_clock_is_moved_as_it_is_asked_and_right_again(void **state) {
    (void)state;
    struct err err;
    struct target t = {.kind = TARGET_NODE, .name = "n0", .pidfd = -1, .ops = &fake};
    struct fault_arg back[] = {{"by", "-1h"}}, fast[] = {{"rate", "1.5"}},
                     strobe[] = {{"by", "90s"}, {"period", "20ms"}};
    assert_int_equal(play("clock-jump", &(struct fault_args){.v = back, .n = 1}, &err), 0);
    assert_true(shifted.by_ns == -INT64_C(3600000000000) && shifted.since_ns > 0);
    assert_true(!shifted.period_ns && !shifted.drift_ppb);
    assert_int_equal(fault_find("clock-jump")->recover(&t, NULL, &err), 0);
    assert_string_equal(calls, "Tt");
    assert_int_equal(play("clock-drift", &(struct fault_args){.v = fast, .n = 1}, &err), 0);
    assert_true(!shifted.by_ns && shifted.drift_ppb == 500000000);
    assert_int_equal(play("clock-strobe", &(struct fault_args){.v = strobe, .n = 2}, &err), 0);
    assert_true(shifted.by_ns == INT64_C(90000000000) && shifted.period_ns == 20000000);
}

/* Arguments that contradict each other. */
static void test_what_cannot_be_had_together_is_refused(void **state) {
    static const struct {
        const char *fault, *said;
        struct fault_arg v[3];
        bool good;
    } rows[] = {
        {"net-rate", "rate_in: 1mbit", {{"rate_in", "1mbit"}, {"direction", "from"}}, false},
        {"net-rate", "rate_out: 1mbit", {{"rate_out", "1mbit"}, {"direction", "to"}}, false},
        {"net-rate", "", {{"rate_out", "1mbit"}, {"direction", "from"}}, true},
        {"net-loss", "bursts of 2", {{"share", "90%"}, {"burst", "2"}}, false},
        {"net-loss", "between good", {{"share", "1%"}, {"good", "2%"}, {"burst", "5"}}, false},
        {"net-loss", "", {{"share", "5%"}, {"bad", "50%"}, {"burst", "5"}}, true},
        {"net-partition", "no first group", {{"shape", "ring"}, {"direction", "from"}}, false},
        {"net-partition", "", {{"shape", "halves"}, {"direction", "from"}}, true},
        {"net-delay", "a third", {{"jitter", "40ms"}, {"distribution", "normal"}}, false},
        {"net-delay", "", {{"jitter", "30ms"}, {"distribution", "normal"}}, true},
        {"net-delay", "", {{"jitter", "300ms"}, {"distribution", "pareto"}}, true}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct err err = {0};
        const struct fault_args a = {.v = rows[i].v, .n = rows[i].v[2].key ? 3 : 2};
        assert_int_equal(fault_find(rows[i].fault)->check(&a, &err), rows[i].good ? 0 : -EINVAL);
        assert_non_null(strstr(rows[i].good ? "" : err.msg, rows[i].said));
    }
}

static void test_a_worker_that_is_not_there_gets_no_signal(void **state) {
    (void)state;
    struct err err;
    struct target t = {.kind = TARGET_WORKER, .name = "n0/0", .pidfd = -1};
    struct fault_arg v[] = {{"signal", "TERM"}};
    const struct fault *f = fault_find("worker-signal");
    assert_int_equal(f->inject(&t, NULL, &err), -ESRCH);
    assert_int_equal(f->status(NULL), SIGUSR1);
    assert_int_equal(f->status(&(struct fault_args){.v = v, .n = 1}), SIGTERM);
}

/* What each fault that takes arguments refuses of them. */
static const struct {
    const char *fault, *key, *value;
} bad[] = {{"clock-jump", "by", "+0s"},
           {"clock-jump", "by", "--1h"},
           {"clock-jump", "by", "100000000h"},
           {"clock-drift", "rate", "1.0"},
           {"clock-drift", "rate", "-1"},
           {"clock-drift", "rate", "1e1"},
           {"clock-drift", "rate", "101"},
           {"clock-strobe", "by", "1"},
           {"clock-strobe", "period", "0s"},
           {"clock-monotonic", "uptime", "900ms"},
           {"clock-boot", "asleep", "0s"},
           {"net-partition", "planes", "date"},
           {"net-partition", "planes", "data,"},
           {"net-partition", "planes", "dat"},
           {"net-partition", "direction", "both ways"},
           {"net-partition", "shape", "square"},
           {"worker-exit", "code", "256"},
           {"worker-exit", "code", "-1"},
           {"worker-kill", "signal", "SIGNONE"},
           {"worker-signal", "signal", "SIGX"},
           {"agent-signal", "signal", "SIGX"},
           {"agent-signal", "signal", "SIGTSTP"},
           {"store-signal", "signal", "SIGSTOP"},
           {"net-delay", "delay", "0s"},
           {"net-delay", "delay", "61s"},
           {"net-delay", "delay", "100"},
           {"net-delay", "jitter", "101ms"},
           {"net-delay", "planes", "date"},
           {"net-delay", "distribution", "bell"},
           {"net-dns-fail", "answer", "formerr"},
           {"net-dns-wrong", "address", "n0"},
           {"net-half-open", "quiet", "very"},
           {"net-half-open", "planes", "dates"},
           {"net-loss", "share", "101%"},
           {"net-loss", "share", "5"},
           {"net-loss", "burst", "0"},
           {"net-loss", "bad", "50%"},
           {"net-loss", "good", "-1%"},
           {"net-loss", "direction", "up"},
           {"net-duplicate", "share", "0%"},
           {"net-reorder", "behind", "61s"},
           {"net-corrupt", "share", "x%"},
           {"net-corrupt-silent", "share", "%"},
           {"net-rate", "rate", "10"},
           {"net-rate", "rate", "1kbit"},
           {"net-rate", "rate_in", "10"},
           {"net-rate", "rate_out", "fast"},
           {"net-rate", "queue", "10"},
           {"net-mtu", "mtu", "67"},
           {"net-reset", "port", "65536"},
           {"net-refuse", "port", "-1"},
           {"net-block", "port", "http"},
           {"net-flap", "down", "1s"},
           {"net-flap", "period", "0s"},
           {"node-cpu", "percent", "4"},
           {"node-cpu-steal", "share", "95%"},
           {"node-preempt", "cloud", "mine"},
           {"node-preempt", "notice", "/etc/notice"},
           {"node-reclaim", "grace", "0s"},
           {"node-memory", "more", "0"},
           {"node-pids", "more", "-1"},
           {"node-flap", "count", "1"},
           {"node-flap", "down", "5s"},
           {"node-flap", "silent", "yes"},
           {"node-reboot", "down", "0s"},
           {"node-reboot", "disk", "old"},
           {"node-start", "disk", "old"},
           {"slurm-preempt", "holds", "0"},
           {"slurm-preempt", "holds", "1h"},
           {"slurm-preempt", "partition", "-high"},
           {"store-answer-lost", "count", "0"},
           {"store-answer-lost", "to", "reads"},
           {"store-full", "most", "0"},
           {"store-restart", "data", "fresh"},
           {"store-restart", "down", "11m"},
           {"store-slow", "delay", "2s"},
           {"store-slow", "run", "0s"},
           {"disk-error", "error", "EWRONG"},
           {"disk-error", "op", "write|sync"},
           {"disk-error", "path", "ckpt/**"},
           {"disk-error", "nth", "0"},
           {"disk-full", "bytes", "1G"},
           {"disk-full", "error", "28"},
           {"disk-late", "delay", "0s"},
           {"disk-late", "opens", "never"},
           {"disk-late", "path", "{disk}/**"},
           {"disk-readonly", "path", "{shared}/../x"},
           {"disk-short", "bytes", "0"},
           {"disk-short", "path", "ckpt/**"},
           {"disk-slow", "delay", "0s"},
           {"disk-slow", "op", "think"},
           {"disk-stuck", "times", "-1"},
           {"disk-stuck", "op", "write/"},
           {"file-delete", "path", "/etc/passwd"},
           {"file-delete", "which", "middle"},
           {"file-flip", "path", "{shared}"},
           {"file-flip", "path", "{shared}/../x"},
           {"file-flip", "offset", "-1"},
           {"file-flip", "bit", "8"},
           {"file-foreign", "from", "../x"},
           {"file-foreign", "from", "/no/such/file"},
           {"file-foreign", "from", "/etc//passwd"},
           {"file-stale", "path", "{out}/latest"},
           {"file-stale", "which", "last"},
           {"file-swap", "other", "a/b"},
           {"file-truncate", "path", "{disk}/a//b"},
           {"file-truncate", "bytes", "-1"},
           {"memory-flip", "bit", "8"},
           {"memory-flip", "offset", "-1"},
           {"worker-deaf", "signal", "SIGKILL"},
           {"worker-slow", "share", "100%"},
           {"worker-slow", "period", "0s"},
           {"worker-thread-hang", "thread", "7"},
           {"worker-abort", "core", "-1"},
           {"worker-segfault", "core", "4k"},
           {"worker-processes", "of", "files"},
           {"worker-memory", "more", "-1"},
           {"worker-file-size", "bytes", "4k"}};
enum { BAD = sizeof(bad) / sizeof(*bad) };

static void test_an_argument_that_makes_no_sense_is_found_before_anything_is_done(void **state) {
    (void)state;
    for (size_t i = 0; i < BAD; i++) {
        struct err err = {0};
        struct fault_arg v[] = {{bad[i].key, bad[i].value}};
        const struct fault *f = fault_find(bad[i].fault);
        if (!f)
            fail_msg("%s has arguments here and no line in faults/faults.h", bad[i].fault);
        assert_int_equal(f->check(&(struct fault_args){.v = v, .n = 1}, &err), -EINVAL);
        assert_non_null(strstr(err.msg, bad[i].value));
        assert_true(f->check(NULL, &err) >= 0);
    }
}

static void test_every_fault_with_arguments_refuses_some(void **state) {
    (void)state;
    EACH(f) {
        size_t i = 0;
        while (i < BAD && strcmp(bad[i].fault, f->name) != 0)
            i++;
        assert_of(f, !f->params->name || f->check, "takes arguments and has no .check of them");
        assert_of(f, !f->params->name || i < BAD,
                  "no row of `bad` in tests/faults/test_faults.c has arguments that it refuses "
                  "(CONTRIBUTING.md, \"Adding a fault\", step 3)");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table_is_in_alphabetical_order),
        cmocka_unit_test(test_every_fault_says_all_about_itself),
        cmocka_unit_test(test_effects_say_what_becomes_of_whom),
        cmocka_unit_test(test_effects_are_read_as_they_were_written),
        cmocka_unit_test(test_what_lasts_can_be_undone_and_what_does_not_cannot),
        cmocka_unit_test(test_a_fault_is_found_by_its_name),
        cmocka_unit_test(test_an_argument_not_given_has_its_default),
        cmocka_unit_test(test_a_power_cut_is_silent_before_it_kills),
        cmocka_unit_test(test_a_node_that_cannot_be_silenced_is_not_killed),
        cmocka_unit_test(test_a_node_starts_with_its_disk_or_a_fresh_one),
        cmocka_unit_test(test_a_worker_is_not_sent_what_is_no_signal),
        cmocka_unit_test(test_a_partition_is_of_the_target_and_all_others_or_of_the_groups),
        cmocka_unit_test(test_a_delay_is_taken_away_as_it_was_set),
        cmocka_unit_test(test_a_profile_is_one_impairment_a_step_each_until_the_next),
        cmocka_unit_test(test_peers_are_kept_from_hearing_before_connections_are_forgotten),
        cmocka_unit_test(test_a_clock_is_moved_as_it_is_asked_and_right_again),
        cmocka_unit_test(test_what_cannot_be_had_together_is_refused),
        cmocka_unit_test(test_a_worker_that_is_not_there_gets_no_signal),
        cmocka_unit_test(test_an_argument_that_makes_no_sense_is_found_before_anything_is_done),
        cmocka_unit_test(test_every_fault_with_arguments_refuses_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
