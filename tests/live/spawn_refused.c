/* Runs a command where the kernel refuses what containers and hardened hosts refuse:
 * spawn_refused WHAT[,WHAT..] COMMAND...
 *   namespaces  unshare, setns and clone into new namespaces: EPERM, and no clone3
 *   getfd       pidfd_getfd: EPERM
 *   landlock    its calls: ENOSYS, as before Linux 5.13
 *   listener    seccomp with a listener: EBUSY, as where a container engine has one already
 * It cannot be undone, and holds for all that the command starts. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif

enum { CODE_MAX = 64 };

static const unsigned spaces = CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS |
                               CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWCGROUP;

static struct sock_filter code[CODE_MAX];
static unsigned short n;

static void put(struct sock_filter f) {
    if (n < CODE_MAX)
        code[n++] = f;
}

static void load(size_t offset) {
    put((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

static void refuse(int code_of_error) {
    put((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)code_of_error));
}

/* Whatever its arguments. */
static void refuse_call(long call, int error) {
    load(offsetof(struct seccomp_data, nr));
    put((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1));
    refuse(error);
}

/* When one of these bits is in that argument. */
static void refuse_bits(long call, int argument, unsigned bits, int error) {
    load(offsetof(struct seccomp_data, nr));
    put((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 3));
    load(offsetof(struct seccomp_data, args) + 8 * (size_t)argument);
    put((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
    refuse(error);
}

static bool has(const char *list, const char *word) {
    const char *at = strstr(list, word);
    return at && (at == list || at[-1] == ',') && (!at[strlen(word)] || at[strlen(word)] == ',');
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "spawn_refused WHAT[,WHAT..] COMMAND...\n");
        return 2;
    }
    if (has(argv[1], "namespaces")) {
        refuse_bits(SYS_unshare, 0, spaces, EPERM);
        refuse_bits(SYS_clone, 0, spaces, EPERM);
        refuse_call(SYS_clone3, ENOSYS);
        refuse_call(SYS_setns, EPERM);
    }
    if (has(argv[1], "getfd"))
        refuse_call(SYS_pidfd_getfd, EPERM);
    if (has(argv[1], "landlock"))
        refuse_call(SYS_landlock_create_ruleset, ENOSYS);
    if (has(argv[1], "listener"))
        refuse_bits(SYS_seccomp, 1, SECCOMP_FILTER_FLAG_NEW_LISTENER, EBUSY);
    put((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    struct sock_fprog program = {.len = n, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("seccomp");
        return 2;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
