/* A program that starts its own ranks, which is this one: what they are given, and what becomes of all when some end. */
#include "scenarios/jobs/ranktrain/spawn.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { RANKS = 4 };

/* ---- a rank ---- */

/* What all ranks of a play share: a page that is inherited as a descriptor. */
struct board {
    int starts[RANKS];
    char given[RANKS][512]; /* arguments and variables, each time */
};

static struct board *open_board(void) {
    void *p = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED,
                   atoi(getenv("BOARD")), 0);
    return p == MAP_FAILED ? NULL : p;
}

static const char *variable(const char *name) {
    const char *s = getenv(name);
    return s ? s : "-";
}

static void note(struct board *b, int rank, char **argv) {
    char *at = b->given[rank];
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    *at = 0;
    for (; *argv; argv++)
        at += sprintf(at, "%s ", *argv);
    sprintf(at, "| %s %s %s %s %s %s%s", variable("RANK"), variable("LOCAL_RANK"),
            variable("WORLD_SIZE"), variable("LOCAL_WORLD_SIZE"), variable("MASTER_ADDR"),
            variable("MASTER_PORT"),
            sigismember(&blocked, SIGTERM) || sigismember(&blocked, SIGINT) ||
                    sigismember(&blocked, SIGCHLD)
                ? " blocked"
                : "");
}

/* Does what its word of $PLAY says, "e3,k9,w,i": ends with a status, is killed by a signal, waits for SIGTERM, or ignores
 * it. After ":" it does so when another has said that it is there; before "+" only so many times, and then ends well. */
static int be_a_rank(char **argv) {
    struct board *b = open_board();
    int rank = atoi(getenv("RANK")), times = 0, there = atoi(getenv("THERE")),
        here = atoi(getenv("HERE"));
    const char *word = getenv("PLAY");
    char byte;
    for (int i = 0; i < rank; i++)
        word = strchr(word, ',') + 1;
    int start = ++b->starts[rank];
    note(b, rank, argv);
    if (*word == ':' && read(there, &byte, 1) == 1)
        word++;
    if (*word >= '1' && *word <= '9') {
        times = (int)strtol(word, (char **)&word, 10);
        word++;
        if (start > times)
            return 0;
    }
    if (*word == 'e')
        return atoi(word + 1);
    if (*word == 'k')
        kill(getpid(), atoi(word + 1));
    if (*word == 'i')
        signal(SIGTERM, SIG_IGN);
    for (int i = 0; i < RANKS; i++)
        if (write(here, "x", 1) != 1)
            return 99;
    for (;;)
        pause();
}

/* ---- who starts them ---- */

struct result {
    int r, code;
    char msg[128];
};

static char said[4096];
static struct board *board;

struct play {
    const char *words;
    int n;
    const char *recover; /* NULL: "restart" */
    int spare, signo;    /* signo: what the starter is sent when one has said that it is there */
};

static _Noreturn void start(const struct play *p, int result_fd, char **argv) {
    struct ranktrain_options o = {.spawn = p->n,
                                  .recover = p->recover ? p->recover : "restart",
                                  .backup_workers = p->spare,
                                  .grace_ns = INT64_C(50000000)};
    struct err err = {0};
    struct result res = {0};
    res.r = spawn_ranks(&o, argv, &err);
    res.code = err.code;
    snprintf(res.msg, sizeof(res.msg), "%.127s", err.msg);
    _exit(write(result_fd, &res, sizeof(res)) != sizeof(res));
}

/* Returns what spawn_ranks did; what was said is in `said`. r 1000 + the signal: it was ended by that. */
static struct result run(const struct play *p, char **argv) {
    struct result res = {.r = 1000};
    int result[2], there[2], status, page = memfd_create("board", 0),
                                     text = memfd_create("said", 0);
    char number[3][16], byte;
    assert_int_equal(pipe(result), 0);
    assert_int_equal(pipe(there), 0);
    assert_int_equal(ftruncate(page, sizeof(*board)), 0);
    if (board)
        munmap(board, sizeof(*board));
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
    snprintf(number[0], sizeof(number[0]), "%d", page);
    snprintf(number[1], sizeof(number[1]), "%d", there[0]);
    snprintf(number[2], sizeof(number[2]), "%d", there[1]);
    setenv("BOARD", number[0], 1);
    setenv("THERE", number[1], 1);
    setenv("HERE", number[2], 1);
    setenv("PLAY", p->words, 1);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(text, STDERR_FILENO);
        start(p, result[1], argv);
    }
    close(result[1]);
    if (p->signo) {
        assert_int_equal(read(there[0], &byte, 1), 1);
        kill(pid, p->signo);
    }
    ssize_t n = read(result[0], &res, sizeof(res));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (n != sizeof(res))
        res.r = 1000 + (WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    n = pread(text, said, sizeof(said) - 1, 0);
    said[n > 0 ? n : 0] = 0;
    int fds[] = {result[0], there[0], there[1], page, text};
    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
        close(fds[i]);
    return res;
}

static char *const usual[] = {"job", NULL};

#define KILLED(rank, signo, then)                                                                  \
    "ranktrain: rank " #rank " was killed by signal " #signo "; " then "\n"
#define FAILED(rank, status)                                                                       \
    "ranktrain: rank " #rank " failed with exit status " #status "; the others are ended\n"
#define ENDED "the others are ended"
#define AGAIN "it is started again"
#define ON    "the others go on"

static void test_the_first_that_fails_says_how_all_end(void **state) {
    (void)state;
    static const struct {
        struct play play;
        int r;
        const char *said;
        int starts[RANKS];
    } rows[] = {
        {{"e0,e0,e0", 3}, 0, "", {1, 1, 1}},
        {{"e0", 1}, 0, "", {1}},
        {{"w,:e3", 2}, 3, FAILED(1, 3), {1, 1}},
        {{":e7,w,w", 3}, 7, FAILED(0, 7), {1, 1, 1}},
        {{"w,:k9", 2}, 137, KILLED(1, 9, ENDED), {1, 1}},
        {{"w,:k10", 2}, 138, KILLED(1, 10, ENDED), {1, 1}},
        {{"e0,e0,e255", 3}, 255, FAILED(2, 255), {1, 1, 1}},
        /* who does not obey is killed behind the grace, and is no cause */
        {{"i,:e3", 2}, 3, FAILED(1, 3), {1, 1}},
        /* asked to end */
        {{"w,e0", 2, .signo = SIGTERM}, -ECANCELED, "", {1, 1}},
        {{"w,e0", 2, .signo = SIGINT}, -ECANCELED, "", {1, 1}},
        {{"w", 1, "in-process", .signo = SIGTERM}, -ECANCELED, "", {1}},
        /* started again, who was killed */
        {{"1+k9,e0", 2, "in-process"}, 0, KILLED(0, 9, AGAIN), {2, 1}},
        {{"e0,e5", 2, "in-process"}, 5, FAILED(1, 5), {1, 1}},
        {{"1+k9,e0", 2, "restart"}, 137, KILLED(0, 9, ENDED), {1, 1}},
        /* spared, as many as are to spare, but never the server */
        {{"e0,k9,e0", 3, .spare = 1}, 0, KILLED(1, 9, ON), {1, 1, 1}},
        {{"e0,k9,k6", 3, .spare = 2}, 0, NULL, {1, 1, 1}},
        {{":k9,w,w", 3, .spare = 2}, 137, KILLED(0, 9, ENDED), {1, 1, 1}},
        {{"w,:e3,w", 3, .spare = 2}, 3, FAILED(1, 3), {1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct result res = run(&rows[i].play, (char **)(uintptr_t)usual);
        if (res.r != rows[i].r)
            fail_msg("%s: %d and not %d; it said: %s", rows[i].play.words, res.r, rows[i].r, said);
        if (rows[i].said)
            assert_string_equal(said, rows[i].said);
        assert_int_equal(res.code, 0);
        for (int k = 0; k < rows[i].play.n && rows[i].starts[k]; k++)
            if (board->starts[k] > rows[i].starts[k] ||
                (res.r == 0 && board->starts[k] < rows[i].starts[k]))
                fail_msg("%s: rank %d was started %d times", rows[i].play.words, k,
                         board->starts[k]);
    }
}

static int count(const char *text) {
    int n = 0;
    for (const char *at = said; (at = strstr(at, text)); at++)
        n++;
    return n;
}

/* Sixteen times, of all ranks together. */
static void test_who_is_killed_again_and_again_is_started_so_often(void **state) {
    (void)state;
    static const struct play often = {"8+k9,8+k6", 2, "in-process"},
                             too_often = {"9+k9,8+k9", 2, "in-process"};
    struct result res = run(&often, (char **)(uintptr_t)usual);
    assert_int_equal(res.r, 0);
    assert_int_equal(count(AGAIN), 16);
    assert_true(board->starts[0] == 9 && board->starts[1] == 9);
    res = run(&too_often, (char **)(uintptr_t)usual);
    assert_int_equal(res.r, 137);
    assert_int_equal(count(AGAIN), 16);
    assert_int_equal(count("signal 9; " ENDED), 1);
}

static void test_ranks_are_given_what_the_program_was_given(void **state) {
    (void)state;
    static const struct {
        char *argv[8];
        const char *addr, *port, *given; /* of rank 1 */
    } rows[] = {
        {{"job", "--spawn=2", "--steps=3", NULL},
         NULL,
         NULL,
         "job --steps=3 | 1 1 2 2 localhost 29500"},
        {{"job", "--spawn", "2", "--steps", "3", NULL},
         NULL,
         NULL,
         "job --steps 3 | 1 1 2 2 localhost 29500"},
        {{"job", "a", "--spawn=2", NULL}, "n0", NULL, "job a | 1 1 2 2 n0 29500"},
        {{"job", "a", "--spawn", NULL}, NULL, "77", "job a --spawn | 1 1 2 2 localhost 77"},
        {{"job", "--spawned=3", "--spaw=1", "--spawn=2", "--spawn=4", "b", NULL},
         "n0",
         "77",
         "job --spawned=3 --spaw=1 b | 1 1 2 2 n0 77"},
        {{"job", NULL}, NULL, NULL, "job | 1 1 2 2 localhost 29500"},
    };
    static const struct play two = {"e0,e0", 2};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        unsetenv("MASTER_ADDR");
        unsetenv("MASTER_PORT");
        setenv("LOCAL_RANK", "6", 1);
        setenv("WORLD_SIZE", "7", 1);
        if (rows[i].addr)
            setenv("MASTER_ADDR", rows[i].addr, 1);
        if (rows[i].port)
            setenv("MASTER_PORT", rows[i].port, 1);
        struct result res = run(&two, (char **)(uintptr_t)rows[i].argv);
        assert_int_equal(res.r, 0);
        assert_string_equal(board->given[1], rows[i].given);
        assert_memory_equal(strstr(board->given[0], "| "), "| 0 0 2 2 ", 10);
    }
}

int main(int argc, char **argv) {
    if (getenv("BOARD") && getenv("RANK"))
        _exit(be_a_rank(argv)); /* what is watched is who starts it */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_that_fails_says_how_all_end),
        cmocka_unit_test(test_who_is_killed_again_and_again_is_started_so_often),
        cmocka_unit_test(test_ranks_are_given_what_the_program_was_given),
    };
    unsetenv("RANK");
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
