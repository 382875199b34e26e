/* Histories for AFL++: whatever the bytes are, they are refused or judged and told, and nothing
 * breaks; and a run that passes shows, to a look that is not ours, that everything has ended well.
 *
 * The first byte says how: below 128 the rest is a history as it stands, else the rest are edits of
 * one of tests/histories (from the working directory): a line is left out, given twice, exchanged
 * with the next, or one of its numbers becomes another; then the lines are numbered anew. */
#include "harness/judge/verdict.h"
#include "reports/report.h"
#include "tests/fuzz/fuzzed.h"

#include <assert.h>
#include <ctype.h>
#include <sys/mman.h>

enum { LINES_MAX = 200, BASES = 3 };

static const char *const names[BASES] = {"worker-killed", "node-powered-off", "gpu-worker-killed"};
static struct buf bases[BASES];

/* ---- a look that is not ours ---- */

static bool has(const struct history *h, enum source s, const char *kind) {
    return history_newest(h, s, kind);
}

static bool ended(const struct history *h, const struct record *start, const char *exit) {
    for (size_t i = 0; i < h->n; i++) {
        const struct record *r = h->records[i];
        if (r->source == SOURCE_KERNEL && record_is(r, exit) && r->pid == start->pid &&
            (record_get(r, "code") || record_get(r, "signal")))
            return true;
    }
    return false;
}

/* Nothing passes of which the end was not seen. */
static void check_pass(const struct history *h) {
    assert(!h->torn && !h->too_long && !h->missing);
    assert(has(h, SOURCE_HARNESS, "job-end") && has(h, SOURCE_HARNESS, "health"));
    assert(has(h, SOURCE_PROBE, "worker-start") && has(h, SOURCE_KERNEL, "agent-start"));
    history_each(r, h) {
        if (r->source == SOURCE_PROBE && record_is(r, "worker-start"))
            assert(ended(h, r, "worker-exit"));
        if (r->source == SOURCE_KERNEL && record_is(r, "agent-start"))
            assert(ended(h, r, "agent-exit"));
    }
}

/* ---- judging ---- */

static const char *const run[] = {"ranktrain", "--checkpoint-every=2", NULL};
static const struct timeline_entry kill_one = {
    .id = "kill", .fault = "worker-kill", .heal = -1, .times = TIMES_N, .times_n = 1};
static const struct timeline_entry go_dark = {
    .id = "dark", .fault = "node-poweroff", .heal = -1, .times = TIMES_N, .times_n = 1};

static struct scenario scenario_of(int which, bool torchrun) {
    bool dark = which == 1;
    return (struct scenario){
        .file = "x",
        .name = "x",
        .torchrun_semantics = torchrun,
        .cluster = {.nodes = dark ? 3 : 1, .start = dark ? 3 : 1},
        .job = {.min_nodes = dark ? 2 : 1,
                .max_nodes = dark ? 3 : 1,
                .workers_per_node = dark ? 1 : 2,
                .max_restarts = 3,
                .launcher = torchrun ? "torchrun" : "rankrun",
                .run = run,
                .run_n = 2,
                .checkpoint_dir = "{shared}/ckpt"},
        .timeline = dark ? &go_dark : &kill_one,
        .timeline_n = 1,
        .limits = {.start_ns = 60000000000,
                   .stall_ns = 30000000000,
                   .total_ns = 600000000000,
                   .grace_ns = 30000000000},
    };
}

static void tell(const struct scenario *s, const struct history *h, const struct rounds *rs,
                 const struct verdict *v) {
    struct recorded_run recorded = {
        .dir = "x", .scenario = s, .history = h, .rounds = rs, .verdict = v};
    struct report_style style = {.width = 80};
    for (size_t i = 0; reports[i]; i++) {
        struct buf out = {0};
        reports[i]->render(&recorded, &style, &out, NULL);
        buf_fini(&out);
    }
}

static void judge(const char *text, size_t n, int which, bool torchrun) {
    struct scenario s = scenario_of(which, torchrun);
    struct history h;
    struct rounds rs;
    struct verdict v;
    char path[64];
    int fd = memfd_create("history", MFD_CLOEXEC);
    if (fd < 0 || write(fd, text, n) != (ssize_t)n)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (history_load(&h, path, NULL) == 0) {
        rounds_load(&rs, !torchrun, &h);
        verdict_judge(&v, &(struct trial){.scenario = &s, .history = &h, .rounds = &rs});
        tell(&s, &h, &rs, &v);
        if (v.exit_code == 0)
            check_pass(&h);
        rounds_fini(&rs);
        history_fini(&h);
    }
    close(fd);
}

/* ---- edits ---- */

struct lines {
    const char *at[LINES_MAX];
    size_t len[LINES_MAX], n;
};

static void cut(struct lines *l, const char *text) {
    for (l->n = 0; *text && l->n < LINES_MAX; l->n++) {
        l->at[l->n] = text;
        l->len[l->n] = strcspn(text, "\n") + 1;
        text += l->len[l->n];
    }
}

/* The which'th number of the line becomes another. */
static void put_number(struct arena *a, struct lines *l, size_t line, unsigned which) {
    static const char *const others[] = {"0",    "1",     "-1",        "9", "9223372036854775807",
                                         "null", "\"0\"", "1065000000"};
    const char *text = arena_strndup(a, l->at[line], l->len[line] - 1), *at = strchr(text, ',');
    unsigned passed = which / 8;
    for (; at && *at; at++)
        if (isdigit((unsigned char)*at) && !isalnum((unsigned char)at[-1]) && !passed--)
            break;
    if (!at || !*at)
        return;
    l->at[line] = arena_printf(a, "%.*s%s%s\n", (int)(at - text), text, others[which % 8],
                               at + strspn(at, "0123456789."));
    l->len[line] = strlen(l->at[line]);
}

static void take_out(struct lines *l, size_t i) {
    memmove(&l->at[i], &l->at[i + 1], (l->n - i - 1) * sizeof(*l->at));
    memmove(&l->len[i], &l->len[i + 1], (l->n - i - 1) * sizeof(*l->len));
    l->n--;
}

static void put_behind(struct lines *l, size_t i, size_t what) {
    const char *at = l->at[what];
    size_t len = l->len[what];
    if (l->n == LINES_MAX)
        return;
    memmove(&l->at[i + 1], &l->at[i], (l->n - i) * sizeof(*l->at));
    memmove(&l->len[i + 1], &l->len[i], (l->n - i) * sizeof(*l->len));
    l->at[i] = at;
    l->len[i] = len;
    l->n++;
}

static void edit(struct arena *a, struct lines *l, const unsigned char *e) {
    size_t i = e[1] % l->n;
    if (e[0] % 4 == 0 && l->n > 2)
        take_out(l, i);
    else if (e[0] % 4 == 1)
        put_behind(l, e[2] % l->n, i);
    else if (e[0] % 4 == 2)
        put_number(a, l, i, e[2]);
    else
        l->at[i] = l->at[e[2] % l->n], l->len[i] = l->len[e[2] % l->n];
}

static void take_edits(const unsigned char *bytes, size_t n, int which, bool torchrun) {
    struct arena a = {0};
    struct buf text = {0};
    struct lines l;
    cut(&l, buf_str(&bases[which]));
    for (size_t i = 0; i + 3 <= n && i < 60; i += 3)
        edit(&a, &l, bytes + i);
    for (size_t i = 0; i < l.n; i++) {
        const char *comma = memchr(l.at[i], ',', l.len[i]);
        buf_printf(&text, "{\"seq\":%zu", i + 1);
        buf_put(&text, comma, l.len[i] - (size_t)(comma - l.at[i]));
    }
    judge(buf_str(&text), text.len, which, torchrun);
    buf_fini(&text);
    arena_fini(&a);
}

static void take(const char *bytes, size_t n) {
    unsigned how = n ? (unsigned char)*bytes : 0;
    if (!n)
        return;
    if (how < 128)
        judge(bytes + 1, n - 1, (int)(how / 2 % BASES), how % 2);
    else
        take_edits((const unsigned char *)bytes + 1, n - 1, (int)(how / 2 % BASES), how % 2);
}

static void read_bases(void) {
    for (int i = 0; i < BASES; i++) {
        char path[128], block[4096];
        snprintf(path, sizeof(path), "tests/histories/%s.jsonl", names[i]);
        FILE *in = fopen(path, "r");
        if (!in) {
            fprintf(stderr, "%s is missing: run this from the root of the repository\n", path);
            exit(64);
        }
        for (size_t n; (n = fread(block, 1, sizeof(block), in)) > 0;)
            buf_put(&bases[i], block, n);
        fclose(in);
    }
}

/* The histories as they stand, then an edit of each. */
static void put_seed(int i, struct buf *out) {
    static const char edits[] = {0, 30, 0, 1, 20, 21, 2, 40, 9, 3, 10, 11};
    buf_putc(out, (char)(i < BASES ? 2 * i : 128 + 2 * (i - BASES)));
    if (i < BASES)
        buf_put(out, bases[i].data, bases[i].len);
    else
        buf_put(out, edits, sizeof(edits));
}

int main(int argc, char **argv) {
    static const struct fuzzed histories = {read_bases, take, put_seed, 2 * BASES};
    return fuzzed_main(&histories, argc, argv);
}
