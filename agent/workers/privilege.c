#include "agent/workers/privilege.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const uint64_t kept = 1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_FOWNER |
                             1ULL << CAP_FSETID | 1ULL << CAP_IPC_LOCK;

/* What an exec could give back; who may not drop it gets nothing by an exec either, with no new
 * privileges. */
static void drop_bounds(void) {
    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        if (!(kept >> cap & 1))
            prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

/* The kernel takes out of the ambient set what is no longer in the others. */
int privilege_drop(struct err *err) {
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    drop_bounds();
    if (syscall(SYS_capget, &head, sets) < 0)
        return err_set(err, -errno, "--sandbox: read this process's capabilities");
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        uint32_t mask = (uint32_t)(kept >> (32 * i));
        sets[i].effective &= mask;
        sets[i].permitted &= mask;
        sets[i].inheritable &= mask;
    }
    if (syscall(SYS_capset, &head, sets) < 0)
        return err_set(err, -errno, "--sandbox: drop capabilities");
    return 0;
}
