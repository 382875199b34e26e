#include "agent/workers/domain.h"

#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux/landlock.h of 6.12; older headers lack parts of it or all. The numbers are the same on
 * every architecture. */
enum {
    QUERY_VERSION = 1,
    RULE_PATH_BENEATH = 1,
    FS_MAKE_CHAR = 1 << 6,
    FS_MAKE_BLOCK = 1 << 11,
    FS_REFER = 1 << 13,
    SCOPE_ABSTRACT_SOCKETS = 1 << 0,
    SCOPE_SIGNALS = 1 << 1,
};
enum { VERSION_REFER = 2, VERSION_SCOPES = 6 };
struct ruleset {
    uint64_t fs, net, scopes;
};
struct path_beneath {
    uint64_t allowed;
    int32_t directory;
} __attribute__((packed));

/* The first version would forbid renaming from one directory into another. */
enum domain_reach domain_reach(void) {
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, QUERY_VERSION);
    if (version < VERSION_REFER)
        return DOMAIN_NONE;
    return version < VERSION_SCOPES ? DOMAIN_MEMORY : DOMAIN_WHOLE;
}

/* Files may be renamed and linked anywhere, as without. */
static int allow_renames(int rules) {
    FILE_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct path_beneath all = {FS_REFER, root};
    if (root < 0)
        return -errno;
    return syscall(SYS_landlock_add_rule, rules, RULE_PATH_BENEATH, &all, 0) < 0 ? -errno : 0;
}

/* A domain must forbid something with files: to make devices is refused anyway. */
int domain_enter(struct err *err) {
    enum domain_reach reach = domain_reach();
    struct ruleset r = {.fs = FS_MAKE_CHAR | FS_MAKE_BLOCK | FS_REFER};
    if (reach == DOMAIN_NONE)
        return 0;
    if (reach == DOMAIN_WHOLE)
        r.scopes = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS;
    FILE_CLOSE int rules = (int)syscall(SYS_landlock_create_ruleset, &r, sizeof(r), 0);
    int code = rules < 0 ? -errno : allow_renames(rules);
    if (!code && syscall(SYS_landlock_restrict_self, rules, 0) < 0)
        code = -errno;
    return code ? err_set(err, code, "--sandbox: enter a Landlock domain") : 0;
}
