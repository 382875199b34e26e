#include "agent/workers/confinement.h"

#include "agent/workers/domain.h"
#include "agent/workers/machine.h"
#include "agent/workers/sandbox.h"
#include "base/sys/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void tell_what_is_open(struct buf *open) {
    struct err why = {0};
    if (machine_close(&why) < 0)
        buf_printf(open, "%s: as root the workers may write what is the machine's\n", why.msg);
    enum domain_reach reach = domain_reach();
    if (reach == DOMAIN_NONE)
        buf_puts(open, "--sandbox: no Landlock here (Linux 5.19): the workers reach memory, "
                       "descriptors and signals of their user's other processes\n");
    else if (reach == DOMAIN_MEMORY)
        buf_puts(open, "--sandbox: an early Landlock here (Linux 6.12 does more): the workers "
                       "reach their user's other processes by signals and abstract sockets\n");
}

/* Root in a container works on files of whoever started it, and registers memory with network
 * cards: that it keeps, where it has it. */
static int drop_privilege(struct err *err) {
    static const uint64_t kept = RIGHT(CAP_CHOWN) | RIGHT(CAP_DAC_OVERRIDE) | RIGHT(CAP_FOWNER) |
                                 RIGHT(CAP_FSETID) | RIGHT(CAP_IPC_LOCK);
    int code = rights_drop(kept);
    return code ? err_set(err, code, "--sandbox: drop capabilities") : 0;
}

static int enter_filter(const struct buf *filter, struct err *err) {
    struct sock_fprog program = {(unsigned short)(filter->len / sizeof(struct sock_filter)),
                                 (struct sock_filter *)(uintptr_t)filter->data};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return err_set(err, -errno, "--sandbox: enter a filter of system calls");
    return 0;
}

static int hide(struct err *err) {
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_set(err, -errno, "--sandbox: hide this process's memory");
    return 0;
}

/* What needs root comes before root's power goes, and the filter, which refuses it, last. */
int confinement_begin(struct buf *open, struct err *err) {
    BUF_FINI struct buf filter = {0};
    int code = sandbox_make(&filter, err);
    if (!code && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        code = err_set(err, -errno, "--sandbox: forgo new privileges");
    if (!code)
        tell_what_is_open(open);
    if (!code)
        code = drop_privilege(err);
    if (!code)
        code = enter_filter(&filter, err);
    if (!code)
        code = hide(err);
    return code;
}

int confinement_divide(struct err *err) {
    static bool divided;
    int code = divided ? 0 : domain_enter(err);
    divided = divided || !code;
    return code ? code : hide(err);
}
