#include "harness/observe/listing.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "harness/observe/question.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ANSWER_MAX = 1 << 20, STEPS_MAX = 100000 };
static const int64_t DEADLINE_NS = 60000000000; /* a program may have much to load */

struct listing {
    struct question *question;
    int round;
    listing_fn *fn;
    void *arg;
};

/* The steps, or what is wrong with a line. */
static bool read_steps(char *text, int64_t *steps, size_t *n, char *why, size_t size) {
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *word = line + strspn(line, " \t\r");
        word[strcspn(word, " \t\r")] = '\0';
        while (word[0] == '0' && word[1]) /* 00000025 */
            word++;
        if (!*word)
            continue;
        if (*n == STEPS_MAX || !str_to_i64(word, 0, INT64_MAX, &steps[*n])) {
            snprintf(why, size, "it printed \"%.60s\" where the step of a checkpoint should be",
                     word);
            return false;
        }
        ++*n;
    }
    return true;
}

static void answer(struct listing *g, char *text, const char *error) {
    char why[200];
    size_t n = 0;
    int64_t *steps = mem_array(int64_t, STEPS_MAX);
    if (!error && text && !read_steps(text, steps, &n, why, sizeof(why)))
        error = why;
    g->fn(g->arg, g->round, steps, error ? 0 : n, error);
    free(steps);
    free(g);
}

static void on_answer(void *arg, const struct question_answer *a) {
    char late[80];
    snprintf(late, sizeof(late), "it had not ended after %lld s",
             (long long)(DEADLINE_NS / 1000000000));
    answer(arg, a->text,
           a->late       ? late
           : a->ended    ? a->ended
           : a->too_long ? "it printed more than a megabyte"
                         : NULL);
}

static struct question *ask(struct listing *g, struct loop *l, const char *dir, const char *command,
                            int log, struct err *err) {
    FILE_CLOSE int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    const int fds[] = {in, -1, log};
    const struct question_spec q = {.program = {.argv = argv, .dir = dir, .fds = fds},
                                    .bytes_max = ANSWER_MAX,
                                    .within_ns = DEADLINE_NS};
    return question_ask(l, &q, on_answer, g, err);
}

struct listing *listing_start(struct loop *l, const char *dir, const char *command, int log,
                              int round, listing_fn *fn, void *arg) {
    struct listing *g = mem_new(struct listing);
    struct err err = {0};
    struct stat st;
    *g = (struct listing){.round = round, .fn = fn, .arg = arg};
    bool there = stat(dir, &st) == 0;
    if (there)
        g->question = ask(g, l, dir, command, log, &err);
    if (g->question)
        return g;
    answer(g, NULL, there ? err.msg : NULL);
    return NULL;
}

void listing_abandon(struct listing *g) {
    if (g)
        question_abandon(g->question);
    free(g);
}
