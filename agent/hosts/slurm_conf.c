#include "agent/hosts/slurm_conf.h"

#include "base/str.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { KILL_WAIT_S = 30, LINE_BYTES = 4096, VALUE_MAX = 256 };

/* The value of KEY=VALUE in a line; false: it is not there. */
static bool find_value(const char *line, const char *key, char ret[VALUE_MAX]) {
    size_t n = strlen(key);
    for (const char *at = line; (at = strcasestr(at, key)); at += n) {
        if ((at > line && !isspace((unsigned char)at[-1])) || at[n] != '=')
            continue;
        const char *value = at + n + 1;
        size_t len = strcspn(value, " \t\r\"");
        if (len >= VALUE_MAX)
            return false;
        memcpy(ret, value, len);
        ret[len] = '\0';
        return true;
    }
    return false;
}

static void take_seconds(const char *line, const char *key, int *ret) {
    char value[VALUE_MAX];
    int64_t seconds;
    if (find_value(line, key, value) && str_to_i64(value, 0, 65534, &seconds))
        *ret = (int)seconds;
}

static void take_mode(const char *line, bool *ret) {
    char value[VALUE_MAX];
    if (find_value(line, "PreemptMode", value))
        *ret = strcasestr(value, "REQUEUE") != NULL;
}

static bool names_partition(char *names, const char *wanted) {
    for (char *rest = names, *name; (name = strsep(&rest, ","));)
        if (str_eq(name, wanted))
            return true;
    return false;
}

/* A line of a partition counts where it is the job's, or the defaults of those that follow. */
static void take_line(const char *line, const char *partition, struct slurm_conf *c) {
    char names[VALUE_MAX];
    if (!find_value(line, "PartitionName", names)) {
        take_seconds(line, "KillWait", &c->kill_wait_s);
        take_mode(line, &c->requeues);
        return;
    }
    if (strcasecmp(names, "DEFAULT") != 0 && !names_partition(names, partition))
        return;
    take_seconds(line, "GraceTime", &c->grace_s);
    take_mode(line, &c->requeues);
}

void slurm_conf_parse(const char *text, size_t len, const char *partition, struct slurm_conf *ret) {
    struct slurm_conf c = {.kill_wait_s = KILL_WAIT_S};
    const char *end = text + len;
    char line[LINE_BYTES];
    size_t n = 0;
    for (const char *at = text; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        const char *comment = memchr(at, '#', (size_t)(stop - at));
        size_t part = (size_t)((comment ? comment : stop) - at);
        bool goes_on = part > 0 && !comment && at[part - 1] == '\\';
        part -= goes_on;
        if (n + part < sizeof(line)) {
            memcpy(line + n, at, part);
            n += part;
        }
        at = stop + 1;
        if (goes_on && at < end)
            continue;
        line[n] = '\0';
        take_line(line, partition, &c);
        n = 0;
    }
    *ret = c;
}
