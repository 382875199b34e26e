/* The body of test_core_file: spawn_core FILE. Writes a core of a child that has marked what it keeps and what it wants left out of
 * a core, and has far more addresses than it uses. Prints "skip" with the reason, or nothing. */
#include "faults/mechanism/core_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static char *map(size_t size) {
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
    if (at == MAP_FAILED) {
        printf("skip: no %zu bytes can be mapped: %s\n", size, strerror(errno));
        fflush(stdout);
        _exit(77);
    }
    return at;
}

/* The words are put together here, so that they stand nowhere else in the program. */
static void say(char *at, char what) {
    snprintf(at, 64, "this is %c%c%c%c", what, what, what, what);
}

static void be_struck(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *kept = map(page), *left_out = map(page);
    map((size_t)32 << 40); /* to look through its pages would take minutes */
    say(kept, 'k');
    say(left_out, 'l');
    madvise(left_out, page, MADV_DONTDUMP);
    raise(SIGSTOP);
    _exit(0);
}

int main(int argc, char **argv) {
    int status = 0,
        fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    struct err err = {0};
    pid_t pid = fork();
    if (pid == 0)
        be_struck();
    if (fd < 0 || pid < 0 || waitpid(pid, &status, WUNTRACED) != pid)
        return 1;
    if (!WIFSTOPPED(status))
        return 0; /* it has said why */
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0) {
        printf("skip: a child cannot be traced: %s\n", strerror(errno));
        kill(pid, SIGKILL);
        return 0;
    }
    ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
    waitpid(pid, &status, __WALL);
    const struct core_of of = {
        .pid = pid, .tids = (const pid_t[]){pid}, .n = 1, .bytes_max = 1 << 30};
    int r = core_file_write(fd, &of, &err);
    if (r)
        printf("%s\n", err.msg);
    kill(pid, SIGKILL);
    waitpid(pid, &status, __WALL);
    return r != 0;
}
