/* From what was typed to what a worker runs, its environment and its header on the console: every combination of
 * options, programs and variables, with a disk and an environment that are played, against a record. */
#include "tests/played.h"

#include "agent/workers/command.h"
#include "agent/workers/console.h"
#include "agent/workers/env.h"
#include "base/str.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    const char *path, *python, *before, *devices, *nccl, *threads; /* NULL: not set */
    bool no_tee;
} world;

static char *played_getenv(const char *name) {
    static const char *const names[] = {"PATH",
                                        "PYTHON_EXEC",
                                        "RANKRUN_BEFORE_WORKER",
                                        "CUDA_VISIBLE_DEVICES",
                                        "TORCH_NCCL_ASYNC_ERROR_HANDLING",
                                        "OMP_NUM_THREADS"};
    const char *const values[] = {world.path,    world.python, world.before,
                                  world.devices, world.nccl,   world.threads};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(names[i], name) == 0)
            return (char *)(uintptr_t)values[i];
    fail_msg("%s is nothing that a worker is told by", name);
    return NULL;
}

/* "/opt/bin/tool" is a program, ".../dir" a directory, ".../text" may not be executed. */
static int played_stat(const char *path, struct stat *st) {
    note("  look at %.60s (%zu)", path, strlen(path));
    *st = (struct stat){.st_mode = str_ends(path, "/dir") ? S_IFDIR : S_IFREG};
    return strstr(path, "nowhere") || strstr(path, "none") ? -1 : 0;
}

static int played_access(const char *path, int mode) {
    note("  may it be done: %.60s %d", path, mode);
    return str_ends(path, "/text") ? -1 : 0;
}

static int played_hostname(char *ret, size_t size) {
    memset(ret, 'h', size);
    return 0;
}

static struct tee *played_tee_new(struct err *err) {
    return fails("tee") ? err_set(err, -errno, "--tee: a thread"), NULL : (struct tee *)&world;
}

static int played_follow(struct tee *t, const struct tee_stream *s, struct err *err) {
    assert_ptr_equal(t, &world);
    note("follow %s to %d with \"%s\", %s into %s", s->path, s->fd, s->header,
         s->needles ? s->needles[0] : "nothing", s->filtered_path);
    return fails("  so") ? err_set(err, -errno, "--tee: follow %s", s->path) : 0;
}

#define getenv      played_getenv
#define stat(p, s)  played_stat(p, s)
#define access      played_access
#define gethostname played_hostname
#define tee_new     played_tee_new
#define tee_follow  played_follow
#include "agent/workers/command.c"
#include "agent/workers/console.c"
#include "agent/workers/env.c"
#undef getenv
#undef stat
#undef access

/* ---- what is typed ---- */

static const char *const programs[] = {"train.py", "tool",        "none",  "/opt/tool", "/opt/dir",
                                       "./text",   "$local_rank", "a.pyc", "/nowhere",  "py"};
static const char *const pieces[] = {"$local_rank",
                                     "${local_rank}",
                                     "$$",
                                     "$",
                                     "x",
                                     "${",
                                     "}",
                                     "local_rank",
                                     "$local_",
                                     "$9",
                                     "_",
                                     "9",
                                     "${LOCAL_RANK}",
                                     "$local_ranks",
                                     "${x}",
                                     "\xc3",
                                     " "};

static void note_texts(const char *what, char *const *v) {
    buf_printf(&played.said, "%s", what);
    for (; *v; v++)
        buf_printf(&played.said, " [%s]", *v);
    buf_putc(&played.said, '\n');
}

static const char *one_of(const char *a, const char *b, const char *c) {
    return draw(3) == 0 ? a : draw(2) ? b : c;
}

static void type(uint64_t seed) {
    ARENA_FINI struct arena a = {0};
    char words[3][80] = {"", "", ""};
    static char deep[PATH_MAX + 20];
    (void)seed;
    world.python = one_of(NULL, "", "python3.11");
    world.before = one_of(NULL, "", "/opt/before");
    memset(deep, 'd', sizeof(deep) - 1);
    deep[PATH_MAX - 6 + draw(3)] = '\0'; /* with "/tool" just room, or not */
    world.path = draw(6) == 0 ? deep : one_of(NULL, "/opt/none:/opt/bin::/usr/dir", ":");
    const char *const typed[] = {programs[draw(10)], words[0], words[1], words[2], NULL};
    for (int i = 0; i < 3; i++)
        for (int k = draw(4); k > 0; k--)
            strcat(words[i], pieces[draw(17)]);
    struct worker_command c = {.words = typed,
                               .module = draw(3) == 0,
                               .no_python = draw(3) == 0,
                               .run_path = draw(3) == 0};
    c.run_path &= !c.module && !c.no_python; /* as options refuse it */
    note("module %d, no python %d, run path %d, path %.30s", c.module, c.no_python, c.run_path,
         world.path ? world.path : "unset");
    note_texts("typed", (char *const *)(uintptr_t)typed);
    note_texts("runs", command_make(&c, draw(12), &a));
}

static struct worker_spec draw_spec(void) {
    struct worker_spec s = {.run_id = "job",
                            .round = 1000 + (uint64_t)draw(100),
                            .token = draw(2) ? "t0ken" : NULL,
                            .world_size = 20 + draw(9),
                            .group_world_size = 30 + draw(9),
                            .restart_count = 40 + draw(9),
                            .max_restarts = 50 + draw(9),
                            .master_addr = "10.0.0.1",
                            .master_port = 6000 + draw(9),
                            .group_rank = 70 + draw(9),
                            .rank_base = 80 + draw(9),
                            .local_world_size = 1 + draw(4),
                            .role = "trainer",
                            .role_rank_base = 90 + draw(9),
                            .role_world_size = 100 + draw(9),
                            .virtual_local_rank = draw(2),
                            .timer_file = draw(2) ? "/tmp/timer" : NULL};
    return s;
}

static void tell(uint64_t seed) {
    ARENA_FINI struct arena a = {0};
    struct worker_spec s = draw_spec();
    (void)seed;
    world.devices = one_of(NULL, "", "GPU-a,7,");
    world.nccl = one_of(NULL, "", "0");
    world.threads = one_of(NULL, "", "4");
    note_texts("told", env_make(&s, draw(4), draw(2) ? "/e.json" : "", &a));
}

static void show_some(uint64_t seed) {
    static const char *const needles[] = {"loss", NULL}, *const others[] = {"bad", NULL};
    static const char *const prefixes[] = {NULL,
                                           "",
                                           "<${rank}/${local_rank}>",
                                           "${hostname}|${role_name}",
                                           "${none} ${ $rank ${rank",
                                           "$${rank}}${role_nam}${role_namer}"};
    uint8_t to_file[4], shown[4];
    bool hidden[4];
    struct tee *t = NULL;
    struct err err = {0};
    (void)seed;
    for (int i = 0; i < 4; i++) {
        to_file[i] = (uint8_t)draw(4);
        shown[i] = (uint8_t)draw(4);
        hidden[i] = draw(4) == 0;
    }
    struct worker_output what = {.log_dir = "/logs",
                                 .to_file = to_file,
                                 .tee = draw(6) ? shown : NULL,
                                 .hidden = draw(2) ? hidden : NULL,
                                 .prefix = prefixes[draw(6)],
                                 .out_needles = draw(2) ? needles : NULL,
                                 .err_needles = draw(2) ? others : NULL};
    struct output o = {.what = &what, .run_dir = "/logs/run", .restart_count = 3};
    struct worker_spec s = draw_spec();
    int code = console_begin(&t, &o, &s, &err);
    note("shown: %d %s, %s", code, err.msg, t ? "a tee" : "no tee");
}

static void begin(uint64_t seed) {
    memset(&world, 0, sizeof(world));
    for (int i = 0; i < 40; i++) {
        type(seed);
        tell(seed);
        show_some(seed);
    }
}

static const struct play plays[] = {
    {"tests/agent/workers/record/command.txt", begin, 6, true, {EMFILE, ENOENT}}};

static void test_what_workers_run_and_are_told_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_workers_run_and_are_told_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
