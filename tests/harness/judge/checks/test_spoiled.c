/* Spoiled: what is said of each planted case when the run was broken off, or the harness was away, or
 * something was in its way, or all of it was another kind of run or asked for something else, is what was said before. */
#include "tests/harness/judge/checks/cases_judge.h"
#include "tests/harness/judge/checks/each_case.h"

#include "base/rand.h"

/* ---- another scenario ---- */

static void give(struct scenario *s, const char *const *option) {
    s->job.launcher_args = option;
    s->job.launcher_args_n = 1;
}

static void ask_events(struct scenario *s) {
    static const char *const option[] = {"--event-log-handler=console", NULL};
    give(s, option);
}

static void ask_count_of_node(struct scenario *s) {
    static const char *const option[] = {"--restart-count=node", NULL};
    give(s, option);
}

static void ask_failure(struct scenario *s) {
    s->expect.outcome = OUTCOME_FAILED;
}

static void ask_stop(struct scenario *s) {
    s->expect.outcome = OUTCOME_STOPPED;
}

static void ask_no_restart(struct scenario *s) {
    s->job.max_restarts = 0;
}

static void ask_torchrun(struct scenario *s) {
    s->torchrun_semantics = true;
}

static void ask_disks(struct scenario *s) {
    s->job.checkpoint_dir = "{disk}/ckpt";
}

static void ask_store_on_n0(struct scenario *s) {
    s->cluster.store_on = "n0";
}

static void ask_nothing(struct scenario *s) {
    s->expect = (struct expect){.outcome = s->expect.outcome};
    s->timeline_n = 0;
}

/* ---- */

/* What is put behind a record, in its moment: the rest of a line; or what is another in every line:
 * `to` for `from`, or no line with it. */
static const struct spoiler {
    const char *name, *record;
    bool cut; /* nothing follows */
    const char *from, *to;
    void (*ask)(struct scenario *s); /* what is asked is something else */
} spoilers[] = {
    {"cut", NULL, true},
    {"interrupted", "\"source\":\"harness\",\"kind\":\"interrupted\",\"signal\":2}", false},
    {"broken off", "\"source\":\"harness\",\"kind\":\"interrupted\",\"signal\":2}", true},
    {"a little late",
     "\"source\":\"harness\",\"kind\":\"lag\",\"max_ns\":400000000,\"window_ns\":20000000}", false},
    {"just there", "\"source\":\"harness\",\"kind\":\"lag\",\"max_ns\":2000000000,\"window_ns\":1}",
     false},
    {"away",
     "\"source\":\"harness\",\"kind\":\"lag\",\"max_ns\":2000000001,\"window_ns\":20000000}",
     false},
    {"waited for",
     "\"source\":\"harness\",\"kind\":\"lag\",\"max_ns\":3000000000,\"window_ns\":1,\"why\":\"x\"}",
     false},
    {"blind", "\"source\":\"harness\",\"kind\":\"lag\",\"max_ns\":5000000001,\"window_ns\":1}",
     false},
    {"dead man",
     "\"source\":\"harness\",\"kind\":\"dead-man\",\"who\":\"n0\",\"silent_ns\":30000000}", false},
    {"scarce",
     "\"source\":\"harness\",\"kind\":\"scarce\",\"what\":\"memory\",\"limit\":1,\"used\":1,"
     "\"why\":"
     "\"memory was scarce\"}",
     false},
    {"unseen", "\"source\":\"job\",\"kind\":\"step\",\"node\":\"n0\",\"pid\":999,\"step\":1}",
     false},
    {.name = "ranks that the job starts", .from = "\"argv0\"", .to = "\"below\":90,\"argv0\""},
    {.name = "lost events", .from = "\"lost\":0", .to = "\"lost\":2"},
    {.name = "printed", .from = "\"job_seq\"", .to = "\"from\":\"output\",\"job_seq\""},
    {.name = "simulated",
     .from = "\"kind\":\"run\"",
     .to = "\"kind\":\"run\",\"kernel\":\"simulated\""},
    {.name = "processes",
     .from = "\"kind\":\"run\"",
     .to = "\"kind\":\"run\",\"isolation\":\"processes\""},
    {.name = "exits of zombies",
     .from = "\"kind\":\"run\"",
     .to = "\"kind\":\"run\",\"exits\":\"zombie\",\"kernel\":\"6.1\""},
    {.name = "exits of events",
     .from = "\"kind\":\"run\"",
     .to = "\"kind\":\"run\",\"exits\":\"events\""},
    {.name = "exits that nobody knows",
     .from = "\"kind\":\"worker-exit\",",
     .to = "\"kind\":\"worker-exit\",\"unknown\":true,"},
    {.name = "lasting", .from = "\"ends_node\":", .to = "\"effects\":[\"lasting\"],\"ends_node\":"},
    {.name = "no kernel", .from = "\"source\":\"kernel\""},
    {.name = "no probe", .from = "\"source\":\"probe\""},
    {.name = "no job", .from = "\"source\":\"job\""},
    {.name = "no disk", .from = "\"source\":\"disk\""},
    {.name = "no launcher", .from = "\"source\":\"launcher\""},
    {.name = "no second round", .from = "\"pid\":12"},
    {.name = "events are printed", .ask = ask_events},
    {.name = "each node counts restarts", .ask = ask_count_of_node},
    {.name = "it is to fail", .ask = ask_failure},
    {.name = "it is to be stopped", .ask = ask_stop},
    {.name = "no restarts", .ask = ask_no_restart},
    {.name = "torchrun's promises", .ask = ask_torchrun},
    {.name = "checkpoints on disks of nodes", .ask = ask_disks},
    {.name = "the store is on n0", .ask = ask_store_on_n0},
    {.name = "nothing is asked for", .ask = ask_nothing},
};

static int64_t time_of(const char *line) {
    return atoll(strstr(line, "\"t\":") + strlen("\"t\":"));
}

/* What stands in place of a line; NULL: nothing. */
static const char *spoiled_line(struct arena *a, const char *line, const struct spoiler *s) {
    const char *at = s->from ? strstr(line, s->from) : NULL;
    if (!at || !s->to)
        return at ? NULL : line;
    return arena_printf(a, "%.*s%s%s", (int)(at - line), line, s->to, at + strlen(s->from));
}

/* The lines of a case, with that behind one of them. */
static void put_spoiled(struct buf *out, struct arena *a, char *const *lines,
                        const struct spoiler *s, size_t at) {
    size_t seq = 0;
    for (size_t i = 0; lines[i] && *lines[i] && (i <= at || !s->cut); i++) {
        const char *line = spoiled_line(a, lines[i], s);
        if (line)
            buf_printf(out, "{\"seq\":%zu%s\n", ++seq, strchr(line, ','));
        if (i == at && s->record)
            buf_printf(out, "{\"seq\":%zu,\"t\":%" PRId64 ",%s\n", ++seq, time_of(lines[i]),
                       s->record);
    }
}

/* Returns whether it can be loaded. */
static bool judge(struct verdict *v, const struct planted_case *c, const struct spoiler *spoiler,
                  const struct buf *text) {
    struct history h;
    struct scenario s = cases_scenario(c->history, c->dialect);
    struct trial t = {.scenario = &s, .history = &h};
    if (spoiler->ask)
        spoiler->ask(&s);
    int fd = memfd_create(c->history, MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text->data, text->len), text->len);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    if (history_load_from(&h, fd, c->history, NULL) < 0)
        return false;
    verdict_judge(v, &t);
    history_fini(&h);
    return true;
}

/* What the check of the case says, what is shown first, and what the verdict comes to. */
static void put_verdict(struct buf *out, const struct verdict *v, const char *check) {
    const struct finding *first = verdict_first(v);
    verdicts_put(out, finding_of(v, check));
    buf_printf(out, "first %s, exit %d\n", first ? first->check : "nothing", v->exit_code);
}

static void note(struct case_alterations *ret, const struct planted_case *c,
                 const struct spoiler *s, size_t at, const struct buf *text, struct buf *told) {
    struct buf said = {0};
    struct verdict v;
    buf_puts(&said, s->name);
    if (s->record || s->cut)
        buf_printf(&said, " behind record %zu", at + 1);
    buf_putc(&said, '\n');
    if (judge(&v, c, s, text)) {
        put_verdict(&said, &v, c->check);
        ret->asked++;
        ret->otherwise += finding_of(&v, c->check)->status != c->status;
    }
    ret->sum = verdicts_sum(ret->sum, buf_str(&said));
    if (told)
        buf_puts(told, buf_str(&said));
    buf_fini(&said);
}

static void spoil(struct case_alterations *ret, const struct planted_case *c, struct buf *told) {
    ARENA_FINI struct arena a = {0};
    struct buf text = {0};
    struct rand r;
    size_t n;
    uint64_t seed = 31;
    for (const char *at = c->name; *at; at++)
        seed = seed * 31 + (unsigned char)*at;
    rand_init(&r, seed);
    *ret = (struct case_alterations){.sum = VERDICTS_SUM_OF_NOTHING};
    planted_text(&text, c->history, c->edits);
    char **lines = str_split(&a, arena_strdup(&a, buf_str(&text)), '\n', &n);
    for (size_t i = 0; i < sizeof(spoilers) / sizeof(*spoilers); i++) {
        size_t at = 1 + (size_t)rand_below(&r, n - 2);
        buf_clear(&text);
        put_spoiled(&text, &a, lines, &spoilers[i], at);
        note(ret, c, &spoilers[i], at, &text, told);
    }
    buf_fini(&text);
}

static void test_what_is_said_of_a_spoiled_run_is_the_same_as_before(void **state) {
    (void)state;
    each_case_compare(spoil, "spoiled", 21);
}

int main(int argc, char **argv) {
    const struct CMUnitTest test =
        cmocka_unit_test(test_what_is_said_of_a_spoiled_run_is_the_same_as_before);
    return each_case_main(argc, argv, spoil, &test);
}
