#include "agent/sys/rights.h"

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

enum { CAPABILITIES = 64 };

/* CAP_SYS_PTRACE is not among them: a tracer without it sees into processes that have no more than
 * itself, its own job's, and not into the node's first process. */
static const int kept[] = {
    CAP_CHOWN,    CAP_DAC_OVERRIDE,     CAP_FOWNER,      CAP_FSETID,   CAP_KILL,
    CAP_SETGID,   CAP_SETUID,           CAP_SETPCAP,     CAP_SETFCAP,  CAP_SYS_CHROOT,
    CAP_NET_RAW,  CAP_NET_BIND_SERVICE, CAP_LEASE,       CAP_IPC_LOCK, CAP_IPC_OWNER,
    CAP_SYS_NICE, CAP_SYS_RESOURCE,     CAP_AUDIT_WRITE,
};

bool rights_keeps(int capability) {
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
        if (kept[i] == capability)
            return true;
    return false;
}

/* Who executes as uid 0 is given the bounding set; without the right to narrow it, nothing that is
 * executed may give anything. */
static int narrow_bounds(void) {
    for (int i = 0; i < CAPABILITIES; i++)
        if (!rights_keeps(i) && prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1 &&
            prctl(PR_CAPBSET_DROP, i, 0, 0, 0) != 0)
            return geteuid() == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ? -errno : 0;
    return 0;
}

int rights_drop(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    int r = narrow_bounds();
    if (r)
        return r;
    if (syscall(SYS_capget, &header, data) != 0)
        return -errno;
    for (int i = 0; i < CAPABILITIES; i++)
        if (!rights_keeps(i)) {
            data[CAP_TO_INDEX(i)].effective &= ~CAP_TO_MASK(i);
            data[CAP_TO_INDEX(i)].permitted &= ~CAP_TO_MASK(i);
            data[CAP_TO_INDEX(i)].inheritable &= ~CAP_TO_MASK(i);
        }
    return syscall(SYS_capset, &header, data) != 0 ? -errno : 0;
}

/* ---- signals ---- */

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self  446
#endif

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
    int fd = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
    if (fd < 0)
        return -errno;
    int r = enter_rules(fd);
    close(fd);
    return r;
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

int rights_confine_signals(bool looks_at_others) {
    return !looks_at_others && scope_signals() == 0 ? 0 : refuse_everybody();
}
