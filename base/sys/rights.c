#include "base/sys/rights.h"

#include "base/sys/file.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- capabilities ---- */

/* CAP_SYS_PTRACE is not among them: a tracer without it sees into processes that have no more than
 * itself, its own job's, and not into the node's first process. */
const uint64_t rights_of_programs =
    RIGHT(CAP_CHOWN) | RIGHT(CAP_DAC_OVERRIDE) | RIGHT(CAP_FOWNER) | RIGHT(CAP_FSETID) |
    RIGHT(CAP_KILL) | RIGHT(CAP_SETGID) | RIGHT(CAP_SETUID) | RIGHT(CAP_SETPCAP) |
    RIGHT(CAP_SETFCAP) | RIGHT(CAP_SYS_CHROOT) | RIGHT(CAP_NET_RAW) | RIGHT(CAP_NET_BIND_SERVICE) |
    RIGHT(CAP_LEASE) | RIGHT(CAP_IPC_LOCK) | RIGHT(CAP_IPC_OWNER) | RIGHT(CAP_SYS_NICE) |
    RIGHT(CAP_SYS_RESOURCE) | RIGHT(CAP_AUDIT_WRITE);

/* Who executes as uid 0 is given the bounding set; without the right to narrow it, nothing that is
 * executed may give anything. */
static int narrow_bounds(uint64_t kept) {
    for (int i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
        if (!(kept & RIGHT(i)) && prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1 &&
            prctl(PR_CAPBSET_DROP, i, 0, 0, 0) != 0)
            return geteuid() == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ? -errno : 0;
    return 0;
}

/* The kernel takes out of the ambient set what is no longer in the others. */
int rights_drop(uint64_t kept) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    int r = narrow_bounds(kept);
    if (r)
        return r;
    if (syscall(SYS_capget, &header, sets) != 0)
        return -errno;
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        uint32_t mask = (uint32_t)(kept >> (32 * i));
        sets[i].effective &= mask;
        sets[i].permitted &= mask;
        sets[i].inheritable &= mask;
    }
    return syscall(SYS_capset, &header, sets) != 0 ? -errno : 0;
}

/* ---- signals ---- */

/* As the kernel has it since 6.12; the headers of many systems are older. */
struct landlock_rules {
    uint64_t files, network, scoped;
};
static const uint64_t SCOPE_SIGNAL = 1 << 1;

/* Neither is let to an ordinary process that could still gain rights. */
static int enter_rules(int fd) {
    if (syscall(SYS_landlock_restrict_self, fd, 0) == 0)
        return 0;
    if (errno != EPERM || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -errno;
    return syscall(SYS_landlock_restrict_self, fd, 0) == 0 ? 0 : -errno;
}

static int scope_signals(void) {
    struct landlock_rules rules = {.scoped = SCOPE_SIGNAL};
    FILE_CLOSE int fd = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
    return fd < 0 ? -errno : enter_rules(fd);
}

static int refuse_everybody(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RIGHTS_OWN_ARCH, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)), /* its low half */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, UINT32_MAX, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(*code), .filter = code};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0)
        return 0;
    if (errno != EACCES || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -errno;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0 ? 0 : -errno;
}

int rights_confine_signals(void) {
    return scope_signals() == 0 ? 0 : refuse_everybody();
}
