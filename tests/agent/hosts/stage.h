/* stage: what a program of ours prints while a test calls it, and calls of the system that go wrong when a test says so. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

enum { STAGE_BYTES = 1 << 20 };

/* Standard output and error while something is played: FIFOs, so that who is started may read what is said. */
static struct stage {
    char folder[64], paths[2][80];
    int fds[2], saved[2];
    int terminal; /* the other end of the one that is a terminal; -1: none */
    char said[2][STAGE_BYTES];
} stage = {.fds = {-1, -1}, .terminal = -1};

static inline void stage_open(void) {
    snprintf(stage.folder, sizeof(stage.folder), "/tmp/test_stage_XXXXXX");
    assert_non_null(mkdtemp(stage.folder));
    for (int i = 0; i < 2; i++) {
        snprintf(stage.paths[i], sizeof(stage.paths[i]), "%s/%s", stage.folder, i ? "err" : "out");
        assert_int_equal(mkfifo(stage.paths[i], 0600), 0);
        stage.fds[i] = open(stage.paths[i], O_RDWR | O_CLOEXEC | O_NONBLOCK);
        assert_true(stage.fds[i] >= 0);
        fcntl(stage.fds[i], F_SETPIPE_SZ, STAGE_BYTES);
    }
}

static inline void stage_close(void) {
    for (int i = 0; i < 2; i++) {
        close(stage.fds[i]);
        unlink(stage.paths[i]);
    }
    rmdir(stage.folder);
}

static inline void stage_begin(void) {
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        stage.saved[i] = fcntl(i + 1, F_DUPFD_CLOEXEC, 10);
        int flags = fcntl(stage.fds[i], F_GETFL);
        fcntl(stage.fds[i], F_SETFL, flags & ~O_NONBLOCK);
        dup2(stage.fds[i], i + 1);
    }
}

/* One of the two, 1 or 2, is a terminal that changes nothing. */
static inline void stage_as_terminal(int fd) {
    struct termios t;
    stage.terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    assert_true(stage.terminal >= 0);
    assert_int_equal(grantpt(stage.terminal) | unlockpt(stage.terminal), 0);
    int slave = open(ptsname(stage.terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_int_equal(tcgetattr(slave, &t), 0);
    cfmakeraw(&t);
    assert_int_equal(tcsetattr(slave, TCSANOW, &t), 0);
    fflush(NULL);
    dup2(slave, fd);
    close(slave);
}

static inline void stage_read(int fd, char *to) {
    size_t n = 0;
    ssize_t got;
    fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
    while ((got = syscall(SYS_read, fd, to + n, (size_t)STAGE_BYTES - 1 - n)) > 0)
        n += (size_t)got;
    to[n] = '\0';
}

/* What was printed is in stage.said; of a terminal what it showed. */
static inline void stage_end(int terminal) {
    fflush(NULL);
    for (int i = 0; i < 2; i++)
        stage_read(terminal == i + 1 ? stage.terminal : stage.fds[i], stage.said[i]);
    for (int i = 0; i < 2; i++) {
        dup2(stage.saved[i], i + 1);
        close(stage.saved[i]);
    }
    if (terminal)
        close(stage.terminal);
}

static inline int stage_compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Its lines in their alphabetical order: of several hosts nobody knows which is first. */
static inline void stage_sort(char *text) {
    static char copy[STAGE_BYTES];
    char *lines[256], *save = NULL;
    size_t n = 0;
    memcpy(copy, text, strlen(text) + 1);
    for (char *l = strtok_r(copy, "\n", &save); l && n < 256; l = strtok_r(NULL, "\n", &save))
        lines[n++] = l;
    qsort(lines, n, sizeof(*lines), stage_compare);
    *text = '\0';
    for (size_t i = 0; i < n; i++)
        text = stpcpy(stpcpy(text, lines[i]), "\n");
}

/* Fails with both texts in full. */
static inline void stage_assert(const char *what, const char *is, const char *wanted) {
    if (strcmp(is, wanted) != 0)
        fail_msg("%s: \"%s\" and not \"%s\"", what, is, wanted);
}
