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
#include <sys/prctl.h>
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

static void begin_as(struct vfork_spawn *t, const char *const *words, pid_t parent,
                     struct process *ret) {
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
    t->parent = parent;
    MUST(vfork_spawn_begin(t, arena_alloc(&arena, VFORK_SPAWN_STACK), ret) == 0);
}

static void begin_with(struct vfork_spawn *t, const char *const *words, struct process *ret) {
    begin_as(t, words, getpid(), ret);
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

/* The descriptors of a child, in lines: those that ls has for itself are not among them. */
static const char *descriptors_of(struct vfork_spawn t) {
    int status;
    const char *said = output_of(t, &status, WORDS("sh", "-c", "ls /proc/$$/fd; :"));
    MUST(status == 0);
    return said;
}

/* What is kept, and what is reported to, wherever they lie: nothing else is left. */
static void descriptors(void) {
    static const int places[] = {0, 3, 4, 5, 9, 200};
    int null = fcntl(open("/dev/null", O_RDONLY | O_CLOEXEC), F_DUPFD_CLOEXEC, 300);
    int mine = fcntl(report[1], F_DUPFD_CLOEXEC, 300);
    report[0] = fcntl(report[0], F_DUPFD_CLOEXEC, 300);
    MUST(null >= 300 && mine >= 300 && report[0] >= 300);
    for (int fd = 3; fd < 12; fd++) /* without close-on-exec */
        MUST(dup2(null, fd) == fd);
    for (size_t k = 0; k < 6; k++)
        for (size_t r = 1; r < 6; r++) {
            char wanted[40];
            if (places[k] == places[r])
                continue;
            report[1] = places[r];
            MUST(dup3(mine, report[1], O_CLOEXEC) == report[1]);
            MUST(!places[k] || dup3(null, places[k], O_CLOEXEC) == places[k]);
            snprintf(wanted, sizeof(wanted), places[k] ? "0\n1\n2\n%d\n" : "0\n1\n2\n", places[k]);
            MUST(strcmp(descriptors_of((struct vfork_spawn){.keep = places[k]}), wanted) == 0);
            MUST(dup2(null, report[1]) == report[1]);
            MUST(!places[k] || dup2(null, places[k]) == places[k]);
        }
}

static const char *text_of(const char *path) {
    static char text[256];
    struct buf b = {0};
    MUST(file_read(path, sizeof(text) - 1, &b, NULL) == 0);
    snprintf(text, sizeof(text), "%s", buf_str(&b));
    buf_fini(&b);
    return text;
}

static int run_with(struct vfork_spawn t, const char *const *words) {
    struct process p;
    int status;
    begin_with(&t, words, &p);
    MUST(process_reap(&p, -1, &status) == 0);
    process_close(&p);
    return status;
}

/* Each stream goes into its own file, emptied before, also where the caller has none of that number. */
static void outputs(void) {
    const char *const *both = WORDS("sh", "-c", "echo out; echo err >&2; umask 022");
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    umask(0);
    for (int closed = 0; closed < 4; closed++) {
        struct stat st;
        put_program("o", "what was there before, and is longer", 0666);
        int keep[2] = {fcntl(1, F_DUPFD_CLOEXEC, 400), fcntl(2, F_DUPFD_CLOEXEC, 400)};
        for (int i = 0; i < 2; i++)
            MUST(!(closed & 1 << i) || close(i + 1) == 0);
        int status = run_with((struct vfork_spawn){.outputs = {"o", "e"}}, both);
        for (int i = 0; i < 2; i++)
            MUST(dup2(keep[i], i + 1) == i + 1 && close(keep[i]) == 0);
        MUST(status == 0);
        MUST(strcmp(text_of("o"), "out\n") == 0 && strcmp(text_of("e"), "err\n") == 0);
        MUST(stat("e", &st) == 0 && (st.st_mode & 07777) == 0666);
        MUST(unlink("o") == 0 && unlink("e") == 0);
    }
    MUST(run_with((struct vfork_spawn){.outputs = {"o", ""}},
                  WORDS("sh", "-c", "echo out; test -e o && test ! -e e")) == 0);
    MUST(run_with((struct vfork_spawn){.outputs = {"", "no/such"}, .tag = 5}, both) == 127 << 8);
    MUST(is_reported(5, -ENOENT));
    MUST(run_with((struct vfork_spawn){.outputs = {"."}, .tag = 6}, both) == 126 << 8);
    MUST(is_reported(6, -EISDIR));
    close(null);
}

/* A session of its own, and the signal by which it ends with its parent; none for a stranger. */
static void bound(void) {
    char self[256], wanted[64];
    int status;
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    MUST(n > 0);
    self[n] = '\0';
    const char *said = output_of((struct vfork_spawn){0}, &status, WORDS(self, "how-it-is-bound"));
    snprintf(wanted, sizeof(wanted), "leads 1 1, dies by %d\n", SIGKILL);
    MUST(status == 0 && strcmp(said, wanted) == 0);
    struct process p;
    struct vfork_spawn t = {.outputs = {"never", ""}};
    begin_as(&t, WORDS("true"), getppid(), &p);
    MUST(process_reap(&p, -1, &status) == 0 && WIFSIGNALED(status));
    MUST(WTERMSIG(status) == SIGKILL && access("never", F_OK) < 0);
    process_close(&p);
}

/* Where execvp(3) looks on, and where it does not. */
static void looked_for(void) {
    static const struct {
        const char *path;
        int code;   /* that is reported; 0: it runs */
        int status; /* exit code */
    } rows[] = {{"none:b", 0, 3},
                {"a:b", 0, 3},
                {"file:b", 0, 3},
                {"loop:b", -ELOOP, 126},
                {"a", -EACCES, 126},
                {"a:none", -EACCES, 126},
                {"none:a", -EACCES, 126},
                {"none", -ENOENT, 127},
                {"file", -ENOTDIR, 126},
                {"none:file", -ENOTDIR, 126},
                {"file:none", -ENOENT, 127},
                {"bad:b", 0, 4}};
    MUST(mkdir("a", 0700) == 0 && mkdir("b", 0700) == 0 && mkdir("bad", 0700) == 0);
    MUST(symlink("loop", "loop") == 0);
    put_program("file", "", 0600);
    put_program("a/rankrun-tool", "exit 9", 0600);
    put_program("b/rankrun-tool", "#!/bin/sh\nexit 3\n", 0700);
    put_program("bad/rankrun-tool", "exit 4\n", 0700); /* no format: the shell's */
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char *before = strdup(getenv("PATH"));
        setenv("PATH", rows[i].path, 1);
        int status = run_with((struct vfork_spawn){.tag = 70 + (uint32_t)i}, WORDS("rankrun-tool"));
        setenv("PATH", before, 1);
        free(before);
        if (status != rows[i].status << 8)
            printf("row %zu: %x\n", i, (unsigned)status);
        MUST(status == rows[i].status << 8);
        MUST(!rows[i].code || is_reported(70 + (uint32_t)i, rows[i].code));
    }
}

static int say_how_it_is_bound(void) {
    int by = 0;
    prctl(PR_GET_PDEATHSIG, &by);
    printf("leads %d %d, dies by %d\n", getsid(0) == getpid(), getpgid(0) == getpid(), by);
    return 0;
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

static const struct {
    const char *name;
    void (*run)(void);
} experiments[] = {{"searched", searched},    {"clean", clean},     {"errno_kept", errno_kept},
                   {"bound", bound},          {"outputs", outputs}, {"descriptors", descriptors},
                   {"looked_for", looked_for}};

int main(int argc, char **argv) {
    sigset_t all;
    if (argc == 2 && strcmp(argv[1], "how-it-is-bound") == 0)
        return say_how_it_is_bound();
    sigfillset(&all);
    alarm(60);
    sigdelset(&all, SIGALRM);
    MUST(argc == 2 && file_make_temp_dir(dir, NULL) == 0 && chdir(dir) == 0);
    MUST(process_report_pipe(report) == 0 && sigprocmask(SIG_SETMASK, &all, NULL) == 0);
    signal_ignore_writes();
    size_t i = 0;
    while (i < sizeof(experiments) / sizeof(*experiments) &&
           strcmp(argv[1], experiments[i].name) != 0)
        i++;
    MUST(i < sizeof(experiments) / sizeof(*experiments));
    experiments[i].run();
    MUST(file_remove_tree(dir, NULL) == 0);
    arena_fini(&arena);
    puts("ok");
    return 0;
}
