#include "harness/verbs/crashpoints/memory.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static const char place[] = "/dev/shm";

/* "pid:[4026531836]": containers that share the place count their processes each for itself. */
void crash_memory_path(const struct presence *p, char ret[CRASH_MEMORY_PATH_MAX]) {
    const char *bracket = strchr(p->space, '[');
    unsigned long space = bracket ? strtoul(bracket + 1, NULL, 10) : 0;
    snprintf(ret, CRASH_MEMORY_PATH_MAX, "%s/rankquake-crashpoints-%lu-%d-%" PRIu64, place, space,
             (int)p->harness.pid, p->harness.start_ticks);
}

/* What programs may take without others being put out to swap; UINT64_MAX: the kernel does not say. */
static uint64_t memory_available(void) {
    BUF_FINI struct buf text = {0};
    uint64_t kb = 0;
    const char *at = file_read("/proc/meminfo", 1 << 16, &text, NULL) == 0
                         ? strstr(buf_str(&text), "MemAvailable:")
                         : NULL;
    return at && sscanf(at, "MemAvailable: %" SCNu64, &kb) == 1 ? kb * 1024 : UINT64_MAX;
}

static int check_room(uint64_t room, struct err *err) {
    struct statfs fs;
    if (statfs(place, &fs) != 0)
        return err_set(err, -errno, "look at %s", place);
    if (fs.f_type != TMPFS_MAGIC)
        return err_say(err, -ENOTSUP, "%s is no memory (tmpfs) here", place);
    uint64_t left = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize, memory = memory_available();
    if (left < room)
        return err_say(err, -ENOSPC, "%s has %.1f MB left, and %.1f are wanted (--max-bytes)",
                       place, (double)left / 1e6, (double)room / 1e6);
    if (memory < room)
        return err_say(err, -ENOSPC,
                       "the machine has %.1f MB of memory left, and %.1f are wanted (--max-bytes)",
                       (double)memory / 1e6, (double)room / 1e6);
    return 0;
}

int crash_memory_make(const struct presence *p, uint64_t room, struct err *err) {
    char path[CRASH_MEMORY_PATH_MAX];
    int r = check_room(room, err);
    if (r)
        return r;
    crash_memory_path(p, path);
    return mkdir(path, 0700) == 0 ? 0 : err_set(err, -errno, "make %s", path);
}

bool crash_memory_is_left(const struct presence *p) {
    char path[CRASH_MEMORY_PATH_MAX];
    struct presence own;
    struct stat st;
    presence_own(&own, false);
    crash_memory_path(p, path);
    return str_eq(own.boot, p->boot) && str_eq(own.space, p->space) &&
           presence_state(p) == PRESENCE_OVER && lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid();
}

int crash_memory_remove(const struct presence *p, struct err *err) {
    char path[CRASH_MEMORY_PATH_MAX];
    struct stat st;
    crash_memory_path(p, path);
    return lstat(path, &st) == 0 ? file_remove_tree(path, err) : 0;
}
