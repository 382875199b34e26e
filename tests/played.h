/* played: the system as a part of ours sees it, played by a test. The test includes the part's source with the calls
 * that it makes replaced by functions of its own; each writes a line of what it was asked, and one of them, the so
 * manyth, may fail. What was said is on record (on_record.h). Descriptors are numbers in a table, the lowest that is free first, 0 too: what is closed must be
 * open, and nothing may be left. */
#pragma once

#include "base/rand.h"
#include "tests/agent/on_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAYED_FDS = 1024, PLAYED_CALLS_MAX = 20000, PLAYED_PLACES = 512 };

static struct {
    struct buf said;
    int calls;    /* that might have failed */
    int fails_at; /* this one does; 0: none */
    int code;     /* by this errno */
    bool open[PLAYED_FDS];
} played;

static inline void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline void note(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&played.said, fmt, ap);
    va_end(ap);
    buf_putc(&played.said, '\n');
}

/* The same of a call that may fail: whether it does, with errno. */
static inline bool fails(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline bool fails(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&played.said, fmt, ap);
    va_end(ap);
    bool is = ++played.calls == played.fails_at;
    assert_true(played.calls < PLAYED_CALLS_MAX); /* it goes on for ever */
    buf_puts(&played.said, is ? ": fails\n" : "\n");
    if (is)
        errno = played.code;
    return is;
}

/* ---- chance ---- */

/* What is drawn hangs on the seed, on the place in the source and on how often it was drawn there: never on the order in
 * which a compiler asks for two in one call. */
static struct {
    uint64_t seed;
    uint32_t times[PLAYED_PLACES];
} chance;

static inline int draw_at(unsigned place, int n) {
    struct rand r;
    assert_true(place < PLAYED_PLACES && n > 0);
    rand_init(&r, chance.seed << 40 | (uint64_t)place << 30 | chance.times[place]++);
    return (int)rand_below(&r, (uint64_t)n);
}
#define draw(n) draw_at(__COUNTER__, n)

/* ---- descriptors ---- */

static inline int played_open_from(int least) {
    int fd = least;
    while (played.open[fd])
        fd++;
    assert_true(fd < PLAYED_FDS - 1);
    played.open[fd] = true;
    return fd;
}

static inline int played_open(void) {
    return played_open_from(0);
}

static inline void played_shut(int fd) {
    if (fd < 0 || fd >= PLAYED_FDS || !played.open[fd])
        fail_msg("%d is closed, and was not open, after:\n%s", fd, buf_str(&played.said));
    played.open[fd] = false;
}

static inline void played_file_close(int *fd) {
    if (*fd >= 0) {
        note("close %d", *fd);
        played_shut(*fd);
    }
    *fd = -1;
}

static inline int played_close(int fd) {
    note("close %d", fd);
    played_shut(fd);
    return 0;
}

/* ---- plays ---- */

/* A play is drawn by its seed. Its record has a line for each: how much was said, as a number, when all went well, and
 * in each run in which one call failed. */
struct play {
    const char *record;
    void (*run)(uint64_t seed);
    int seeds;
    bool one_fails; /* each call of it, one in each run */
    int codes[2];   /* by which, in turns */
};

static inline void played_run(const struct play *p, uint64_t seed, int fails_at) {
    buf_clear(&played.said);
    memset(played.open, 0, sizeof(played.open));
    memset(&chance, 0, sizeof(chance));
    chance.seed = seed;
    played.calls = 0;
    played.fails_at = fails_at;
    played.code = p->codes[fails_at % 2];
    p->run(seed);
    for (int fd = 0; fd < PLAYED_FDS; fd++)
        if (played.open[fd])
            fail_msg("%d is left open by:\n%s", fd, buf_str(&played.said));
}

static const struct play *played_play;

static inline void played_say(struct buf *out) {
    const struct play *p = played_play;
    for (int seed = 1; seed <= p->seeds; seed++) {
        uint64_t sum = 0;
        size_t bytes = 0;
        int calls = 0;
        for (int i = 0; i <= calls; i++) {
            played_run(p, (uint64_t)seed, i);
            sum = on_record_sum(sum, played.said.data, played.said.len);
            bytes += played.said.len;
            calls = i || !p->one_fails ? calls : played.calls;
        }
        buf_printf(out, "%d: %d calls fail, %zu bytes, %016llx\n", seed, calls, bytes,
                   (unsigned long long)sum);
    }
    buf_fini(&played.said);
}

/* The test. */
static inline void played_check(const struct play *p) {
    played_play = p;
    on_record_same(p->record, played_say, "this test: --show PLAY SEED [CALL] says all of it");
}

/* What a program was asked for besides: --write its records anew, or --show PLAY SEED [CALL], the so manyth of its
 * plays, of which that call fails. Whether it was; *ret is its exit code. */
static inline bool played_asked(int argc, char **argv, const struct play *plays, int n, int *ret) {
    *ret = 0;
    if (argc == 2 && str_eq(argv[1], "--write")) {
        for (int i = 0; i < n && !*ret; i++) {
            played_play = &plays[i];
            on_record_written(argc, argv, plays[i].record, played_say, ret);
        }
        return true;
    }
    if (argc < 4 || !str_eq(argv[1], "--show") || atoi(argv[2]) < 1 || atoi(argv[2]) > n)
        return false;
    played_run(&plays[atoi(argv[2]) - 1], strtoull(argv[3], NULL, 10),
               argc > 4 ? atoi(argv[4]) : 0);
    *ret = fwrite(played.said.data, 1, played.said.len, stdout) == 0;
    return true;
}

/* What main returns, of a program whose records are those of its plays; the first argument may be a filter of tests. */
static inline int played_run_tests(int argc, char **argv, const struct play *plays, int n,
                                   const struct CMUnitTest *tests, size_t tests_n) {
    int code;
    if (!played_asked(argc, argv, plays, n, &code)) {
        if (argc > 1)
            cmocka_set_test_filter(argv[1]);
        code = _cmocka_run_group_tests("tests", tests, tests_n, NULL, NULL);
    }
    buf_fini(&played.said);
    return code;
}
#define played_main(argc, argv, plays, tests)                                                      \
    played_run_tests(argc, argv, plays, (int)(sizeof(plays) / sizeof(*(plays))), tests,            \
                     sizeof(tests) / sizeof(*(tests)))
