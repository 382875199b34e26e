#include "harness/preflight/xids.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORD_MAX = 8192, XIDS_MAX = 256 };

/* By NVIDIA's "Xid Errors": what an application alone brings about. */
static bool is_of_the_job(int number) {
    static const int numbers[] = {13, 31, 43, 45, 68};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (numbers[i] == number)
            return true;
    return false;
}

/* "NVRM: Xid (PCI:0000:3b:00): 79, pid=...". */
static void take(struct arena *a, const char *record, struct xid *v, int *n) {
    static const char begins[] = "NVRM: Xid (";
    const char *at = strstr(record, begins), *end = at ? strstr(at, "): ") : NULL;
    if (!end)
        return;
    at += strlen(begins);
    int number = atoi(end + strlen("): "));
    const char *device = arena_strndup(a, at, (size_t)(end - at));
    for (int i = 0; i < *n; i++)
        if (v[i].number == number && str_eq(v[i].device, device)) {
            v[i].times++;
            return;
        }
    if (number > 0 && *n < XIDS_MAX)
        v[(*n)++] = (struct xid){device, number, 1, is_of_the_job(number)};
}

/* The log gives a record at a time; a file, as much as it has: lines either way. */
int xids_read(struct arena *a, struct xid **ret) {
    const char *path = getenv("RANKQUAKE_KMSG");
    FILE_CLOSE int fd = open(path ? path : "/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct xid *v = arena_array(a, struct xid, XIDS_MAX);
    BUF_FINI struct buf text = {0};
    char part[RECORD_MAX];
    int n = 0;
    if (fd < 0)
        return -errno;
    for (;;) {
        ssize_t got = read(fd, part, sizeof(part));
        if (got < 0 && (errno == EPIPE || errno == EINTR))
            continue; /* older records were overwritten meanwhile */
        if (got < 0 && errno != EAGAIN)
            return -errno;
        if (got <= 0)
            break;
        buf_put(&text, part, (size_t)got);
    }
    for (char **line = str_split(a, buf_str(&text), '\n', NULL); *line; line++)
        take(a, *line, v, &n);
    *ret = v;
    return n;
}
