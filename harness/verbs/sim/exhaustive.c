#include "harness/verbs/sim/exhaustive.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "harness/explore/explore.h"
#include "reports/headway.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATH_BYTES_MAX = 1 << 20 };

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signo) {
    interrupted = 1;
}

/* ---- options ---- */

static const char *const foreign[] = {
    "--seeds",  "--seed", "--time",     "--rate", "--swarm",     "--no-swarm", "--calm",
    "--frozen", "--jobs", "--scenario", "--out",  "--no-shrink", NULL};

static int take_bound(const struct arguments *a, struct explore_config *c, const char *word) {
    const char *equals = strchr(word, '=');
    char name[32] = "";
    int64_t most = 1;
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    if (n < sizeof(name))
        memcpy(name, word, n);
    int at = explore_bound_find(name);
    if (at < 0)
        return verb_usage_error(a->verb,
                                "--faults: \"%s\" is no kind of fault that --exhaustive knows; "
                                "--exhaustive --faults list prints them",
                                word);
    if (equals && !str_to_i64(equals + 1, 0, 9, &most))
        return verb_usage_error(a->verb, "--faults %s: write a number from 0 to 9", word);
    c->bounds[at] = (int)most;
    return 0;
}

static int take_bounds(const struct arguments *a, struct explore_config *c) {
    const char *list = arguments_value(a, "--faults");
    ARENA_FINI struct arena arena = {0};
    int r = 0;
    if (!list)
        return 0;
    memset(c->bounds, 0, sizeof(c->bounds));
    for (char **w = str_split(&arena, list, ',', NULL); *w && r == 0; w++)
        r = take_bound(a, c, *w);
    return r;
}

static int take_options(const struct arguments *a, struct explore_config *c) {
    int64_t agents = 2, rounds = 2, restarts = 1, together = 2, least = 1, megabytes = 2048;
    int r = 0;
    for (int i = 0; foreign[i] && r == 0; i++)
        if (arguments_value(a, foreign[i]))
            r = verb_usage_error(a->verb,
                                 "%s says nothing about --exhaustive, which has no chance in it",
                                 foreign[i]);
    if (r == 0)
        r = arguments_number(a, "--agents", 1, EXPLORE_AGENTS_MAX, &agents);
    if (r == 0)
        r = arguments_number(a, "--least", 1, agents, &least);
    if (r == 0)
        r = arguments_number(a, "--rounds", 1, 9, &rounds);
    if (r == 0)
        r = arguments_number(a, "--restarts", 0, 9, &restarts);
    if (r == 0)
        r = arguments_number(a, "--together", 0, 9, &together);
    if (r == 0)
        r = arguments_number(a, "--memory", 1, 1 << 20, &megabytes);
    explore_config_default((int)agents, c);
    c->min = (int)least;
    c->rounds = (int)rounds;
    c->max_restarts = (int)restarts;
    c->together = (int)together;
    c->memory_max = (uint64_t)megabytes << 20;
    c->from_start = arguments_value(a, "--from-start");
    c->free_watches = arguments_value(a, "--free-watches");
    return r ? r : take_bounds(a, c);
}

/* ---- telling ---- */

static void print_config(const struct explore_config *c, const char *core) {
    printf(
        "sim, every order of %d agents (%d to %d nodes, %d rounds, max_restarts %d%s%s), rankquake "
        "%s, %s\n",
        c->agents, c->min, c->max, c->rounds, c->max_restarts,
        c->from_start ? ", from the start" : "", c->free_watches ? ", watches free" : "",
        RANKQUAKE_VERSION, core);
    printf("at most    %d together of", c->together);
    for (int i = 0; i < EXPLORE_BOUNDS_N; i++)
        if (c->bounds[i])
            printf(" %s=%d", explore_bounds()[i].name, c->bounds[i]);
    printf("\n");
    fflush(stdout);
}

static bool on_seen(void *arg, uint64_t states, uint64_t waiting, int depth) {
    BUF_FINI struct buf note = {0};
    buf_printf(&note, "%" PRIu64 " waiting, depth %d", waiting, depth);
    headway_at(arg, (int64_t)states, buf_str(&note));
    return !interrupted;
}

static const char *end_text(enum explore_end end) {
    switch (end) {
    case EXPLORE_COMPLETE:
        return "no violation";
    case EXPLORE_VIOLATED:
    case EXPLORE_STUCK:
        return "VIOLATED";
    case EXPLORE_LIMIT:
        return "no violation so far, but not all was seen: the memory given is used (--memory)";
    case EXPLORE_STOPPED:
        return "interrupted";
    }
    return "";
}

static int tell(const struct explore_config *c, struct explore_result *r, double seconds) {
    bool wrong = r->end == EXPLORE_VIOLATED || r->end == EXPLORE_STUCK;
    printf("%s, %" PRIu64 " states, %" PRIu64 " transitions, %.1f s of CPU, depth %d\n",
           end_text(r->end), r->states, r->transitions, seconds, r->depth);
    printf("           %" PRIu64 " of the states are ends, %" PRIu64 " lie behind the last round; "
           "%" PRIu64 " MB; two alike by chance: 1 in %.0e\n",
           r->ends, r->bounded, r->bytes >> 20,
           36893488147419103232.0 / ((double)r->states * (double)r->states + 1));
    if (wrong) {
        struct explore_result again;
        printf("violated   %s\npath       as --path FILE takes it:\n%s", r->text, r->path);
        printf("what happens on it:\n");
        explore_replay(c, r->path, &again);
    }
    return wrong                       ? EXIT_FAIL
           : r->end == EXPLORE_LIMIT   ? EXIT_INCONCLUSIVE
           : r->end == EXPLORE_STOPPED ? EXIT_INTERRUPTED
                                       : EXIT_PASS;
}

/* How many states there are nobody knows before all were seen. */
static int search(struct explore_config *c, const char *core, const struct headway_wish *wish) {
    struct explore_result r;
    struct sigaction entry = {.sa_handler = on_interrupt};
    struct headway headway;
    clock_t begun = clock();
    sigaction(SIGINT, &entry, NULL);
    sigaction(SIGTERM, &entry, NULL);
    c->seen = on_seen;
    c->arg = &headway;
    print_config(c, core);
    headway_begin(&headway, &(struct headway_spec){
                                .out = stdout, .verb = "sim", .unit = "states", .wish = *wish});
    explore_run(c, &r);
    headway_end(&headway);
    int code = tell(c, &r, (double)(clock() - begun) / CLOCKS_PER_SEC);
    free(r.path);
    return code;
}

static int replay(const struct arguments *a, const struct explore_config *c) {
    const char *file = arguments_value(a, "--path");
    BUF_FINI struct buf text = {0};
    struct explore_result r;
    struct err err = {0};
    int code = EXIT_USAGE_ERROR;
    if (file_read(file, PATH_BYTES_MAX, &text, &err)) {
        fprintf(stderr, "rankquake sim: %s\n", err.msg);
    } else if (!explore_replay(c, buf_str(&text), &r)) {
        fprintf(stderr, "rankquake sim: %s, %s; give the options that it was found with\n", file,
                r.text);
    } else if (!r.transitions) {
        fprintf(stderr, "rankquake sim: %s: no choice is written down in it\n", file);
    } else {
        code = r.end == EXPLORE_VIOLATED ? EXIT_FAIL : EXIT_PASS;
        printf("%s\n", code == EXIT_FAIL ? r.text : "nothing is violated on it");
    }
    return code;
}

int exhaustive_main(const struct arguments *a, const char *core) {
    struct explore_config c;
    const char *kinds = arguments_value(a, "--faults");
    if (kinds && str_eq(kinds, "list")) {
        for (int i = 0; i < EXPLORE_BOUNDS_N; i++)
            printf("%-14s =%d  %s\n", explore_bounds()[i].name, explore_bounds()[i].usual,
                   explore_bounds()[i].text);
        return EXIT_PASS;
    }
    struct headway_wish wish;
    int r = a->files_n ? verb_usage_error(a->verb, "%s: it takes no files", a->files[0])
                       : take_options(a, &c);
    r = r ? r : arguments_headway(a, &wish);
    if (r)
        return r;
    return arguments_value(a, "--path") ? replay(a, &c) : search(&c, core, &wish);
}
