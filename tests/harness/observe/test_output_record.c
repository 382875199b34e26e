/* What workers print as records, with files and a clock that are played: who prints what in which portions, who ends,
 * who speaks by events and what cannot be followed are drawn; each record and each call is on record. */
#include "tests/harness/observe/noted.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "harness/observe/lines.h"
#include "harness/observe/output.h"
#include "harness/scenario/pattern.h"
#include "scenarios/jobs/rankquake.h"

enum { STEPS = 120, FILES = 12, PENDING = 6 };

struct played_file {
    void *who;
    int fd;
    const char *pending[PENDING]; /* read when it is drained */
    int n;
    struct lines_count count;
};

static struct {
    int64_t now_ns;
    lines_fn *fn;
    void *arg;
    struct played_file v[FILES];
    int files;
    struct output_reader *o;
} world;

static int64_t played_now(void) {
    return world.now_ns++;
}

static struct lines *played_lines_new(struct loop *l, lines_fn *fn, void *arg, struct err *err) {
    if (fails("lines"))
        return err_set(err, -errno, "watch"), NULL;
    world.fn = fn;
    world.arg = arg;
    return (struct lines *)&world;
}

static struct lines *played_lines_free(struct lines *l) {
    note("lines %s", l ? "end" : "are none");
    for (int i = 0; i < world.files; i++)
        if (world.v[i].fd >= 0)
            played_shut(world.v[i].fd);
    return NULL;
}

static struct lines_file *played_follow(struct lines *l, int fd, void *who, struct err *err) {
    if (fails("follow %d", fd)) {
        err_set(err, -errno, "follow");
        played_shut(fd);
        return NULL;
    }
    struct played_file *f = &world.v[world.files++];
    *f = (struct played_file){.who = who, .fd = fd};
    return (struct lines_file *)f;
}

static void deliver(struct played_file *f) {
    f->count.portions += f->n > 0;
    for (int i = 0; i < f->n; i++) {
        f->count.lines++;
        world.fn(world.arg, f->who, f->pending[i]);
    }
    f->n = 0;
}

static void played_drain(struct lines_file *f) {
    note("drain %d", ((struct played_file *)f)->fd);
    deliver((struct played_file *)f);
}

static void played_lines_close(struct lines_file *f) {
    struct played_file *p = (struct played_file *)f;
    note("follow %d no more", p->fd);
    played_shut(p->fd);
    p->fd = -1;
}

static struct lines_count played_counted(const struct lines_file *f) {
    return ((const struct played_file *)f)->count;
}

#define lines_new          played_lines_new
#define lines_free         played_lines_free
#define lines_follow       played_follow
#define lines_drain        played_drain
#define lines_close        played_lines_close
#define lines_counted      played_counted
#define file_close         played_file_close
#define clock_monotonic_ns played_now
#include "harness/observe/output.c"

static void on_heard(void *arg, const char *node, pid_t pid, const char *line) {
    assert_ptr_equal(arg, &world);
    note("heard of %s, %d: %s", node, (int)pid, line);
}

static const struct observed plain[] = {
    {.kind = "step", .pattern = "step ([0-9,]+)", .own = true},
    {.kind = "loss", .pattern = "loss ([-0-9.e]+|nan)"},
    {.kind = "step", .pattern = "\\| ([0-9x]+)/(\\d+)"},
    {.kind = "resume", .pattern = "resuming(?: from (\\w+))?", .own = true},
    {.kind = "step", .pattern = "Epoch (\\d+): (\\d+)/(\\d+)"},
    {.kind = "checkpoint-commit", .pattern = "saved(?: ([\\d,]+))?"},
    {.kind = "checkpoint-begin", .pattern = "saving"},
    {.kind = "done", .pattern = "model (\\w+)"},
    {.kind = "steady", .pattern = "steady now"},
};

static const char *const lines[] = {"step 1",
                                    "step 2 loss 0.5",
                                    "step 3 loss nan",
                                    "step 12,345",
                                    "step 99999999999999999999",
                                    "loss 3",
                                    "loss -",
                                    "| 4/10",
                                    "| 5/10",
                                    "| x/11",
                                    "| 6/11",
                                    "resuming",
                                    "resuming from 7",
                                    "resuming from seven",
                                    "Epoch 1: 3/5",
                                    "Epoch 2: 5/5",
                                    "Epoch 9999999999: 1/5",
                                    "Epoch 1: 1/0",
                                    "saved",
                                    "saved 1,200",
                                    "saving step 6 loss 2e-3 and saved 6, model 7a",
                                    "model 3f3f",
                                    "stead",
                                    "noise that nobody waits for"};

static void follow(void) {
    static const char *const nodes[] = {"n0", "n1"};
    struct err err = {0};
    if (world.files == FILES)
        return;
    int code =
        output_follow(world.o, played_open(), nodes[draw(2)], draw(4) ? 100 + draw(6) : 0, &err);
    note("follows: %d %s", code, err.msg);
}

static void print(void) {
    if (!world.files)
        return;
    struct played_file *f = &world.v[draw(world.files)];
    if (f->n < PENDING && f->fd >= 0)
        f->pending[f->n++] = lines[draw(sizeof(lines) / sizeof(*lines))];
}

/* An event of a worker, or what was read of its output. */
static void say_by_event(void) {
    static const char *const kinds[] = {"step", "checkpoint-commit", "lunch"};
    struct json_writer *w = recorder_begin(&noted.rec, played_now(), SOURCE_JOB, kinds[draw(3)]);
    json_put_i64(w, "pid", 100 + draw(6));
    if (draw(3) == 0)
        json_put_string(w, "from", "output");
    output_overruled(world.o, recorder_end(&noted.rec, NULL));
}

static void step(void) {
    switch (draw(12)) {
    case 0:
        follow();
        return;
    case 1:
        if (draw(3) == 0)
            output_last_words(world.o, draw(8) ? 100 + draw(6) : 0);
        return;
    case 2:
        if (draw(4) == 0)
            say_by_event();
        return;
    case 3:
        world.now_ns += draw(400000000);
        return;
    case 4:
    case 5:
        if (world.files)
            deliver(&world.v[draw(world.files)]);
        return;
    default:
        print();
    }
}

static void observe(uint64_t seed) {
    static const struct scenario s = {.observe = {.v = plain, .n = sizeof(plain) / sizeof(*plain)}};
    struct err err = {0};
    memset(&world, 0, sizeof(world));
    world.now_ns = 1000000000;
    noted_begin(NULL);
    world.o = output_new((struct loop *)&world, &noted.rec, &s, on_heard, &world, &err);
    note("reads %d: %s", world.o != NULL, err.msg);
    for (int i = 0; world.o && i < STEPS; i++)
        step();
    for (int i = 0; i < world.files; i++)
        world.v[i].count.cut_lines = world.v[i].count.skipped_bytes = 3 + (uint64_t)i;
    if (world.o)
        output_end(world.o);
    assert_null(output_free(world.o));
    noted_end();
}

static const struct play plays[] = {
    {"tests/harness/observe/record/output.txt", observe, 80, true, {EMFILE, ENOSPC}}};

static void test_what_workers_print_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_workers_print_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
