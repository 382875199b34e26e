/* What test_vfork_spawn starts: each name on the command line is one experiment, in a process of
 * its own, with a folder of its own to work in. Prints "ok", or what was wrong. */
#include "agent/workers/vfork_spawn.h"
#include "base/sys/file.h"
#include "base/sys/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 400 };

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: %s (errno %d)\n", __LINE__, #condition, errno);                       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static struct arena arena;
static int report[2];
static char dir[] = "/tmp/spawn_vfork_spawn_XXXXXXXX";

static void begin_with(struct vfork_spawn *t, const char *const *words, struct process *ret) {
    size_t n = 0;
    while (words[n])
        n++;
    const char **argv = arena_array(&arena, const char *, n + 2) + 1;
    memcpy(argv, words, n * sizeof(*argv));
    t->files = vfork_spawn_files(words[0], &arena);
    t->argv = argv;
    t->envp = (const char *const *)environ;
    for (int i = 0; i < 2; i++)
        t->outputs[i] = t->outputs[i] ? t->outputs[i] : "";
    t->report = report[1];
    t->parent = getpid();
    MUST(vfork_spawn_begin(t, arena_alloc(&arena, VFORK_SPAWN_STACK), ret) == 0);
}

/* What it printed; its wait status in *ret_status. */
static const char *output_of(struct vfork_spawn t, int *ret_status, const char *const *words) {
    static char text[4096];
    struct process p;
    struct buf b = {0};
    t.outputs[0] = "said";
    begin_with(&t, words, &p);
    MUST(process_reap(&p, -1, ret_status) == 0);
    process_close(&p);
    MUST(file_read("said", sizeof(text) - 1, &b, NULL) == 0);
    snprintf(text, sizeof(text), "%s", buf_str(&b));
    buf_fini(&b);
    return text;
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static bool is_reported(uint32_t tag, int code) {
    struct process_failure f;
    return read(report[0], &f, sizeof(f)) == sizeof(f) && f.tag == tag && f.code == code;
}

static void put_program(const char *path, const char *text, mode_t mode) {
    MUST(file_write_atomic(path, text, strlen(text), NULL) == 0);
    MUST(chmod(path, mode) == 0);
}

/* No #!, so the shell runs it; and one that may not be executed stands before it. */
static void searched(void) {
    char path[256];
    int status;
    MUST(mkdir("a", 0700) == 0 && mkdir("b", 0700) == 0);
    put_program("a/rankrun-tool", "#!/bin/false\n", 0600);
    put_program("b/rankrun-tool", "echo \"by $0: $*\"; exit 3\n", 0700);
    snprintf(path, sizeof(path), "nowhere:a:b:%.200s", getenv("PATH"));
    setenv("PATH", path, 1);
    const char *said =
        output_of((struct vfork_spawn){0}, &status, WORDS("rankrun-tool", "x", "y z"));
    MUST(strcmp(said, "by b/rankrun-tool: x y z\n") == 0);
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    setenv("PATH", "nowhere:a", 1);
    output_of((struct vfork_spawn){.tag = 7}, &status, WORDS("rankrun-tool"));
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 126 && is_reported(7, -EACCES));
    output_of((struct vfork_spawn){.tag = 8}, &status, WORDS("rankrun-nothing"));
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 127 && is_reported(8, -ENOENT));
}

/* The descriptors of the caller are not passed on, nor what it does with signals. */
static void clean(void) {
    int status, null = open("/dev/null", O_RDONLY), kept = fcntl(null, F_DUPFD, 600);
    MUST(null >= 0 && kept >= 600 && fcntl(kept, F_SETFD, FD_CLOEXEC) == 0);
    const char *said = output_of((struct vfork_spawn){.keep = kept}, &status,
                                 WORDS("sh", "-c", "ls /proc/$$/fd; :"));
    MUST(strcmp(said, "0\n1\n2\n600\n") == 0);
    said = output_of((struct vfork_spawn){0}, &status,
                     WORDS("sed", "-nE", "s/^Sig(Blk|Ign)://p", "/proc/self/status"));
    unsigned long long blocked = 1, ignored = ~0ULL;
    MUST(sscanf(said, "%llx %llx", &blocked, &ignored) == 2);
    MUST(blocked == 0 && !(ignored & (1ULL << (SIGPIPE - 1) | 1ULL << (SIGXFSZ - 1))));
    said =
        output_of((struct vfork_spawn){0}, &status, WORDS("sh", "-c", "readlink /proc/$PPID/exe"));
    MUST(strstr(said, "spawn_vfork_spawn")); /* and the parent is the caller itself */
}

/* They fail while the caller does, in the same memory: each has its own reason. */
static void errno_kept(void) {
    struct process children[MANY];
    struct vfork_spawn spawns[MANY] = {{0}};
    int status;
    for (int i = 0; i < MANY; i++) {
        spawns[i].tag = (uint32_t)i;
        begin_with(&spawns[i], WORDS("/nowhere/at/all"), &children[i]);
        for (int k = 0; k < 2000; k++)
            MUST(close(-1) == -1 && errno == EBADF);
    }
    for (int i = 0; i < MANY; i++) {
        MUST(process_reap(&children[i], -1, &status) == 0 && WEXITSTATUS(status) == 127);
        process_close(&children[i]);
    }
    bool seen[MANY] = {false};
    struct process_failure f;
    for (int i = 0; i < MANY; i++) {
        MUST(read(report[0], &f, sizeof(f)) == sizeof(f) && f.tag < MANY && !seen[f.tag]);
        seen[f.tag] = true;
    }
}

int main(int argc, char **argv) {
    sigset_t all;
    sigfillset(&all);
    alarm(60);
    sigdelset(&all, SIGALRM);
    MUST(argc == 2 && file_make_temp_dir(dir, NULL) == 0 && chdir(dir) == 0);
    MUST(process_report_pipe(report) == 0 && sigprocmask(SIG_SETMASK, &all, NULL) == 0);
    signal_ignore_writes();
    if (strcmp(argv[1], "searched") == 0)
        searched();
    else if (strcmp(argv[1], "clean") == 0)
        clean();
    else if (strcmp(argv[1], "errno_kept") == 0)
        errno_kept();
    MUST(file_remove_tree(dir, NULL) == 0);
    arena_fini(&arena);
    puts("ok");
    return 0;
}
