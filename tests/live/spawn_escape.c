/* What a worker of --sandbox could try: spawn_escape OUTSIDER FOLDER. Each attempt is made by a
 * child of its own and changes nothing; OUTSIDER is the pid of a process of the same user outside
 * the job, "spawn_escape outsider", which prints its pid and lives until its input ends.
 *
 *   open NAME            it could be done
 *   closed NAME ERROR    it could not
 *   works NAME           the same for what jobs do
 *   broken NAME ERROR */
#include "tests/live/attempts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The same on every architecture; older C libraries have no names. */
enum { IO_URING_SETUP = 425, CLONE3 = 435 };
enum { FAN_UNPRIVILEGED = 0x200 };

static pid_t guard, agent, outsider;
static const char *folder;

/* ---- other processes ---- */

static int guard_memory(void) {
    return write_stack(guard);
}
static int agent_memory(void) {
    return write_stack(agent);
}
static int outsider_memory(void) {
    return write_stack(outsider);
}
static int guard_copy(void) {
    return write_nowhere(guard);
}
static int agent_copy(void) {
    return write_nowhere(agent);
}
static int outsider_copy(void) {
    return write_nowhere(outsider);
}
static int guard_descriptor(void) {
    return take_descriptor(guard, 3);
}
static int agent_descriptor(void) {
    return take_descriptor(agent, 0);
}
static int outsider_descriptor(void) {
    return take_descriptor(outsider, 0);
}
static int guard_trace(void) {
    return trace(guard);
}
static int outsider_trace(void) {
    return trace(outsider);
}
static int agent_environment(void) {
    return opened(of(agent, "environ"), O_RDONLY);
}
static int outsider_environment(void) {
    return opened(of(outsider, "environ"), O_RDONLY);
}
static int guard_limits(void) {
    return limit(guard);
}
static int outsider_limits(void) {
    return limit(outsider);
}
static int agent_signal(void) {
    return result(kill(agent, 0));
}
static int outsider_signal(void) {
    return result(kill(outsider, 0));
}

static int outsider_socket(void) {
    return abstract_connect(outsider);
}

/* ---- namespaces ---- */

/* With clone itself, as fork does it. */
static int clone_with(unsigned long flags) {
    long pid = syscall(SYS_clone, flags | SIGCHLD, 0L, 0L, 0L, 0L);
    if (pid == 0)
        _exit(0);
    return result(pid);
}

static int clone_user(void) {
    return clone_with(CLONE_NEWUSER);
}
static int clone_user_mount(void) {
    return clone_with(CLONE_NEWUSER | CLONE_NEWNS);
}
static int clone_network(void) {
    return clone_with(CLONE_NEWNET);
}
static int clone_pids(void) {
    return clone_with(CLONE_NEWPID);
}

/* The first words of struct clone_args: flags, four that are not used here, the signal. */
static int clone3_with(uint64_t flags) {
    uint64_t words[8] = {[0] = flags, [4] = SIGCHLD};
    long pid = syscall(CLONE3, words, sizeof(words));
    if (pid == 0)
        _exit(0);
    return result(pid);
}

static int clone3_user(void) {
    return clone3_with(CLONE_NEWUSER);
}
static int clone3_plain(void) {
    return clone3_with(0);
}
static int unshare_user(void) {
    return result(unshare(CLONE_NEWUSER));
}

/* ---- the kernel ---- */

static int io_uring(void) {
    char params[256] = {0};
    return result(syscall(IO_URING_SETUP, 1, params));
}

/* For faults of its own program only, as every user may. */
static int userfault(void) {
    return result(syscall(SYS_userfaultfd, O_CLOEXEC | 1));
}

static int fanotify(void) {
    return result(syscall(SYS_fanotify_init, FAN_UNPRIVILEGED, O_RDONLY));
}

/* Onto no terminal: who may, finds that. */
static int type_into(unsigned long request) {
    char c = 0;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return syscall(SYS_ioctl, fd, request, &c) < 0 && errno != ENOTTY ? errno : 0;
}

static int type_into_terminal(void) {
    return type_into(TIOCSTI);
}
/* The kernel looks at 32 bits. */
static int type_into_terminal_wide(void) {
    return type_into(TIOCSTI | 1UL << 32);
}

/* ptrace's PTRACE_TRACEME by the door of 32-bit programs. */
static int other_architecture(void) {
#ifdef __x86_64__
    long r = 26;
    __asm__ volatile("int $0x80" : "+a"(r) : "b"(0L), "c"(0L), "d"(0L), "S"(0L) : "memory");
    return r < 0 ? (int)-r : 0;
#else
    return ENOSYS;
#endif
}

/* ---- what is root's ---- */

static int make_device(mode_t kind, dev_t number) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/device-%d", folder, (int)getpid());
    int code = result(mknod(path, kind | 0600, number));
    unlink(path);
    return code;
}

static int make_memory_device(void) {
    return make_device(S_IFCHR, 0x0101);
}
static int make_disk_device(void) {
    return make_device(S_IFBLK, 0x0700);
}

/* The first disk that there is. */
static int disk(void) {
    int code = ENOENT;
    DIR *d = opendir("/dev");
    for (struct dirent *e; code && d && (e = readdir(d)) != NULL;) {
        struct stat st;
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISBLK(st.st_mode))
            continue;
        int fd = openat(dirfd(d), e->d_name, O_RDWR | O_CLOEXEC | O_NONBLOCK);
        code = result(fd);
    }
    return code;
}

static int kernel_log(void) {
    return opened("/dev/kmsg", O_WRONLY);
}

#define A_SETTING "proc/sys/kernel/core_pattern"
static int setting(void) {
    return opened("/" A_SETTING, O_WRONLY);
}
/* It is started there. */
static int setting_by_directory(void) {
    return opened("core_pattern", O_WRONLY);
}
static int setting_by_init(void) {
    return opened(of(1, "root/" A_SETTING), O_WRONLY);
}
static int setting_by_outsider(void) {
    return opened(of(outsider, "root/" A_SETTING), O_WRONLY);
}
static int setting_by_agent(void) {
    return opened(of(agent, "root/" A_SETTING), O_WRONLY);
}
static int system_setting(void) {
    return opened("/sys/kernel/profiling", O_WRONLY);
}
static int interrupts(void) {
    return opened("/proc/irq/default_smp_affinity", O_WRONLY);
}
static int other_user(void) {
    return result(setresuid(1, 1, 1));
}
static int other_group(void) {
    return result(setresgid(1, 1, 1));
}

/* ---- what jobs do ---- */

static pid_t sibling;

static int sibling_copy(void) {
    return write_nowhere(sibling);
}
static int sibling_memory(void) {
    return write_stack(sibling);
}
static int sibling_descriptor(void) {
    return take_descriptor(sibling, 1);
}
static int sibling_signal(void) {
    return result(kill(sibling, 0));
}
static int sibling_socket(void) {
    return abstract_connect(sibling);
}

static void *thread_main(void *arg) {
    *(pid_t *)arg = (pid_t)syscall(SYS_gettid);
    return NULL;
}

static int thread(void) {
    pthread_t t;
    pid_t tid = 0;
    int code = pthread_create(&t, NULL, thread_main, &tid);
    return code ? code : pthread_join(t, NULL) || tid == 0;
}

/* As uv_spawn, subprocess and multiprocessing do. */
static int vforked(void) {
    int status = 1;
    pid_t pid = vfork();
    if (pid == 0) {
        execlp("true", "true", (char *)NULL);
        _exit(1);
    }
    return pid < 0 ? errno : waitpid(pid, &status, 0) != pid || status;
}

static int fifo(void) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/fifo-%d", folder, (int)getpid());
    int code = result(mkfifo(path, 0600));
    unlink(path);
    return code;
}

/* From one directory into another, where Landlock says no by default. */
static int rename_across(void) {
    char dir[4000], from[4096], to[4096];
    snprintf(dir, sizeof(dir), "%s/dir-%d", folder, (int)getpid());
    snprintf(from, sizeof(from), "%s/file-%d", folder, (int)getpid());
    snprintf(to, sizeof(to), "%s/file", dir);
    int fd = open(from, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 || mkdir(dir, 0700) < 0)
        return errno;
    int code = result(rename(from, to));
    if (!code && link(to, from) < 0)
        code = errno;
    unlink(from);
    unlink(to);
    rmdir(dir);
    return code;
}

static int shared_memory(void) {
    char name[64];
    snprintf(name, sizeof(name), "/spawn_escape-%d", (int)getpid());
    int fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    int code = result(fd);
    shm_unlink(name);
    return code ? code : result(memfd_create("spawn_escape", MFD_CLOEXEC));
}

static int devices(void) {
    int code = opened("/dev/null", O_RDWR);
    code = code ? code : opened("/dev/zero", O_RDONLY);
    code = code ? code : opened("/dev/urandom", O_RDONLY);
    return code ? code : opened("/dev/ptmx", O_RDWR);
}

static int own_score(void) {
    return opened("/proc/self/oom_score_adj", O_WRONLY);
}

static int own_limits(void) {
    struct rlimit same;
    return getrlimit(RLIMIT_NOFILE, &same) < 0 ? errno : result(setrlimit(RLIMIT_NOFILE, &same));
}

/* Files of others, in the places of whoever started a container as root. */
static int others_files(void) {
    char path[4096];
    if (geteuid() != 0)
        return 0;
    snprintf(path, sizeof(path), "%s/theirs-%d", folder, (int)getpid());
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    int code = fd < 0 || fchown(fd, 65534, 65534) < 0 || fchmod(fd, 0400) < 0 ? errno : 0;
    code = code ? code : opened(path, O_RDWR);
    if (code == EINVAL) /* a user namespace has root alone */
        code = 0;
    unlink(path);
    return code;
}

/* ---- */

#define A(name)                                                                                    \
    { #name, name, false }
#define ROOT(name)                                                                                 \
    { #name, name, true }

static const struct attempt escapes[] = {
    A(guard_memory),
    A(agent_memory),
    A(outsider_memory),
    A(guard_copy),
    A(agent_copy),
    A(outsider_copy),
    A(guard_descriptor),
    A(agent_descriptor),
    A(guard_trace),
    A(outsider_trace),
    A(agent_environment),
    A(outsider_environment),
    A(guard_limits),
    A(outsider_limits),
    A(agent_signal),
    A(outsider_signal),
    A(outsider_socket),
    A(clone_user),
    A(clone_user_mount),
    A(clone3_user),
    A(clone3_plain),
    A(unshare_user),
    A(io_uring),
    A(userfault),
    A(fanotify),
    A(type_into_terminal),
    A(type_into_terminal_wide),
    A(other_architecture),
    A(outsider_descriptor),
    ROOT(clone_network),
    ROOT(clone_pids),
    ROOT(make_memory_device),
    ROOT(make_disk_device),
    ROOT(disk),
    ROOT(kernel_log),
    ROOT(setting),
    ROOT(setting_by_directory),
    ROOT(setting_by_init),
    ROOT(setting_by_outsider),
    ROOT(setting_by_agent),
    ROOT(system_setting),
    ROOT(interrupts),
    ROOT(other_user),
    ROOT(other_group),
};
static const struct attempt ordinary[] = {
    A(sibling_copy),   A(sibling_memory), A(sibling_descriptor),
    A(sibling_signal), A(sibling_socket), A(thread),
    A(vforked),        A(fifo),           A(rename_across),
    A(shared_memory),  A(devices),        A(own_score),
    A(own_limits),     A(others_files),
};

/* A child that listens and waits: to attempts it is another worker of the group. */
static pid_t start_sibling(void) {
    int ready[2];
    char byte;
    if (pipe(ready) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        abstract_listen();
        close(ready[0]);
        close(ready[1]);
        for (;;)
            pause();
    }
    close(ready[1]);
    (void)!read(ready[0], &byte, 1);
    close(ready[0]);
    return pid;
}

static int be_outsider(void) {
    char byte;
    if (abstract_listen())
        return 1;
    printf("%d\n", (int)getpid());
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "outsider") == 0)
        return be_outsider();
    if (argc != 3)
        return 64;
    outsider = (pid_t)strtol(argv[1], NULL, 10);
    folder = argv[2];
    guard = getppid();
    agent = parent_of(guard);
    sibling = start_sibling();
    make_all(escapes, sizeof(escapes) / sizeof(*escapes), "open", "closed");
    make_all(ordinary, sizeof(ordinary) / sizeof(*ordinary), "works", "broken");
    kill(sibling, SIGKILL);
    waitpid(sibling, NULL, 0);
    return 0;
}
