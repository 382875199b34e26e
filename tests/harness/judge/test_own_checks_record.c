/* Programs of the user's own that judge a run, in a system that is played: what each is started with, what it answers
 * and what the system refuses are drawn; each call and each finding is on record. */
#include "tests/played.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "harness/judge/own_checks.h"
#include "harness/observe/question.h"

#include <fcntl.h>
#include <unistd.h>

enum { HISTORY_FD = 77, RECORDS = 5 };

static struct {
    const char *text; /* what it prints */
    struct question_answer answer;
    question_fn *fn;
    void *arg;
    bool loops, stopped;
} world;

/* ---- the system ---- */

static char **played_environ;

static int played_open_file(const char *path, int flags) {
    return fails("open %s %x", path, (unsigned)flags) ? -1 : played_open();
}

static int played_folder_make(const struct folder *f, const char *name, mode_t mode,
                              struct err *err) {
    return fails("make %s in %s, %o", name, f->path, (unsigned)mode) ? -errno : 0;
}

static int played_folder_create(const struct folder *f, const char *name, struct err *err) {
    return fails("create %s in %s", name, f->path) ? -errno : played_open();
}

static struct loop *played_loop_new(struct err *err) {
    if (fails("a loop")) {
        err_set(err, -errno, "make a loop");
        return NULL;
    }
    assert_false(world.loops);
    world.loops = true;
    return (struct loop *)&world;
}

static void played_loop_stop(struct loop *l) {
    assert_ptr_equal(l, &world);
    world.stopped = true;
}

/* It goes on until somebody stops it. */
static int played_loop_run(struct loop *l, struct err *err) {
    char text[2000];
    assert_ptr_equal(l, &world);
    if (fails("run"))
        return err_set(err, -errno, "wait");
    str_copy(text, sizeof(text), world.text);
    world.answer.text = text;
    world.answer.len = strlen(text);
    world.fn(world.arg, &world.answer);
    assert_true(world.stopped);
    return 0;
}

static struct loop *played_loop_free(struct loop *l) {
    note("no more loop");
    assert_true(l == (void *)&world && world.loops);
    world.loops = false;
    return NULL;
}

static struct question *played_ask(struct loop *l, const struct question_spec *s, question_fn *fn,
                                   void *arg, struct err *err) {
    assert_ptr_equal(l, &world);
    for (const char *const *w = s->program.argv; *w; w++)
        note("  [%s]", *w);
    for (const char *const *e = s->program.envp; *e; e++)
        note("  %s", *e);
    note("with %d %d %d, %zu bytes within %lld ns", s->program.fds[0], s->program.fds[1],
         s->program.fds[2], s->bytes_max, (long long)s->within_ns);
    assert_true(played.open[s->program.fds[0]]);
    assert_true(s->program.fds[2] < 0 || played.open[s->program.fds[2]]);
    if (fails("ask")) {
        err_set(err, -errno, "start it");
        return NULL;
    }
    world.fn = fn;
    world.arg = arg;
    return (struct question *)&world;
}

#define environ           played_environ
#define open(path, flags) played_open_file(path, flags)
#define folder_make       played_folder_make
#define folder_create     played_folder_create
#define file_close        played_file_close
#define loop_new          played_loop_new
#define loop_run          played_loop_run
#define loop_stop         played_loop_stop
#define loop_free         played_loop_free
#define question_ask      played_ask
#include "harness/judge/own_checks.c"
#undef environ
#undef open

/* ---- plays ---- */

#define LONG_20  "a sentence as long.."
#define LONG_100 LONG_20 LONG_20 LONG_20 LONG_20 LONG_20

static const char *const answers[] = {
    "{\"status\":\"pass\"}",
    "{\"status\":\"pass\",\"seen\":\"all of it\",\"expected\":\"all\"}",
    "{\"seen\":\"two\",\"expected\":\"one\",\"evidence\":[2,5],\"status\":\"fail\",\"more\":1}\n",
    "{\"status\":\"fail\",\"evidence\":[1,2,3,4,5,1,2,3,4]}",
    "{\"status\":\"unknown\",\"seen\":\"who knows\",\"expected\":\"that\"}",
    "{\"status\":\"skip\",\"seen\":\"nothing of it\",\"expected\":\"that\",\"evidence\":[]}",
    "{\"status\":\"fail\",\"seen\":\"" LONG_100 LONG_100 LONG_100
    "\",\"expected\":\"" LONG_100 LONG_100 LONG_100 "\"}",
    "{\"status\":\"fail\",\"seen\":\"\",\"expected\":7}",
    "",
    "pass",
    "[\"pass\"]",
    "{\"status\":\"pass\"}{",
    "{}",
    "{\"status\":true}",
    "{\"status\":\"PASS\"}",
    "{\"status\":\"fail\",\"status\":\"pass\"}",
    "{\"status\":\"pass\",\"evidence\":7}",
    "{\"status\":\"fail\",\"evidence\":[1,0]}",
    "{\"status\":\"fail\",\"evidence\":[5,6]}",
    "{\"status\":\"pass\",\"evidence\":[\"2\"]}",
    "{\"status\":\"pass\",\"evidence\":[2.5]}",
};
enum { ANSWERS = sizeof(answers) / sizeof(*answers) };

static void make_history(struct history *h) {
    assert_int_equal(history_create(h, NULL, NULL), 0);
    for (int i = 0; i < RECORDS; i++) {
        history_begin(h, i, SOURCE_KERNEL, "x");
        history_end(h);
    }
}

static void note_finding(const struct finding *f) {
    note("%s %d %s: %s", f->check, (int)f->class, finding_status_name(f->status), f->seen);
    note(" broken %s", f->broken);
    note(" expected %s", f->expected);
    note(" where %s", f->where);
    for (size_t i = 0; i < sizeof(f->evidence) / sizeof(*f->evidence); i++)
        if (f->evidence[i])
            note(" record %lld", (long long)f->evidence[i]);
}

/* Two programs, the second of which answers as the first. */
static void ask_them(uint64_t seed) {
    static const char *const one[] = {"./sees", "--all", NULL}, *const other[] = {"other", NULL};
    static const struct own_check both[] = {
        {.name = "one", .label = "own:one", .program = one, .within_ns = 2500000},
        {.name = "two", .label = "own:two", .program = other, .within_ns = 90000000000}};
    static char *environs[][4] = {{NULL},
                                  {"A=1", "RANKQUAKE_RUN=/another", "B=2", NULL},
                                  {"RANKQUAKE_RUN=", "RANKQUAKE_RUNS=3", NULL}};
    const struct folder dir = {.path = "/runs/7"};
    const struct scenario s = {.checks = both, .checks_n = (size_t)draw(3)};
    struct history h;
    struct verdict v = {0};
    make_history(&h);
    memset(&world, 0, sizeof(world));
    played_environ = environs[draw(3)];
    world.text = answers[seed % ANSWERS];
    world.answer.late = draw(8) == 0;
    world.answer.ended = draw(8) ? NULL : "it ended with 3";
    world.answer.too_long = draw(8) == 0;
    own_checks_judge(&v, &s, &h, HISTORY_FD, draw(3) ? &dir : NULL, draw(6) != 0);
    assert_int_equal(v.n, s.checks_n);
    for (size_t i = 0; i < v.n; i++)
        note_finding(&v.v[i]);
    assert_false(world.loops);
    history_fini(&h);
}

static const struct play plays[] = {
    {"tests/harness/judge/record/own_checks.txt", ask_them, 120, true, {EMFILE, ENOMEM}}};

static void test_what_own_checks_find_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_own_checks_find_is_on_record)};
    return played_main(argc, argv, plays, tests);
}
