#include "agent/hosts/srun.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LINES_MAX = 2 << 20 };

/* Words with a 0 behind each; false: none are to be had. */
static bool read_words(const char *pid, const char *file, struct buf *ret) {
    char path[64];
    struct err err;
    snprintf(path, sizeof(path), "/proc/%.20s/%s", pid, file);
    return file_read(path, LINES_MAX, ret, &err) == 0;
}

/* The word that is `prefix` or begins with it and '='; NULL: none. */
static const char *find_word(const struct buf *words, const char *prefix) {
    size_t n = strlen(prefix);
    for (size_t at = 0; at < words->len; at += strlen(words->data + at) + 1)
        if (strncmp(words->data + at, prefix, n) == 0 &&
            (words->data[at + n] == '\0' || words->data[at + n] == '='))
            return words->data + at;
    return NULL;
}

/* What stands behind rankrun is no option of srun's. */
static bool says_no_kill(const struct buf *words) {
    for (size_t at = 0; at < words->len; at += strlen(words->data + at) + 1) {
        const char *word = words->data + at;
        if (str_eq(str_base(word), "rankrun"))
            return false;
        if (str_eq(word, "-k") || str_starts(word, "--no-kill"))
            return true;
    }
    return false;
}

static enum srun_keeps ask(const char *pid, const char *job) {
    BUF_FINI struct buf name = {0}, environment = {0}, words = {0};
    if (!read_words(pid, "comm", &name) || strncmp(name.data, "srun\n", name.len) != 0 ||
        !read_words(pid, "environ", &environment) || !read_words(pid, "cmdline", &words))
        return SRUN_UNKNOWN;
    const char *id = find_word(&environment, "SLURM_JOB_ID");
    if (!id || !str_eq(id + strlen("SLURM_JOB_ID="), job))
        return SRUN_UNKNOWN;
    return says_no_kill(&words) || find_word(&environment, "SLURM_NO_KILL") ? SRUN_GOES_ON
                                                                            : SRUN_ENDS;
}

enum srun_keeps srun_find(const char *job) {
    FILE_CLOSE_DIR DIR *d = opendir("/proc");
    enum srun_keeps found = SRUN_UNKNOWN;
    for (struct dirent *e; d && found == SRUN_UNKNOWN && (e = readdir(d)) != NULL;)
        found = ask(e->d_name, job); /* what is no process has no such files */
    return found;
}
