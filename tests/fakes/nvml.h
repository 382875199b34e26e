/* The fake of NVIDIA's libnvidia-ml.so.1 (tests/fakes/nvml) in the hands of a test program. */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fake_nvml {
    char dir[200], state[256]; /* dir/dev holds the files of the devices */
};

/* build/.../tests/ROOM/test_x -> build/.../tests/fakes/nvml/libnvidia-ml.so.1 */
static inline void fake_nvml_library(char *ret, size_t size) {
    char self[3000];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = '\0';
    char *tests = strstr(self, "/tests/");
    if (tests)
        *tests = '\0';
    snprintf(ret, size, "%s/tests/fakes/nvml/libnvidia-ml.so.1", self);
}

static inline void fake_nvml_say(const struct fake_nvml *f, const char *text) {
    FILE *out = fopen(f->state, "we");
    if (!out || fputs(text, out) < 0 || fclose(out) != 0)
        abort();
}

/* From here on nvml_open finds the fake, which tells what `text` says (tests/fakes/nvml/nvml.c). */
static inline void fake_nvml_use(struct fake_nvml *f, const char *text) {
    char library[3100], dev[300];
    const char *tmp = getenv("TMPDIR");
    snprintf(f->dir, sizeof(f->dir), "%s/rq-nvml-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(f->dir))
        abort();
    snprintf(f->state, sizeof(f->state), "%s/state", f->dir);
    snprintf(dev, sizeof(dev), "%s/dev", f->dir);
    mkdir(dev, 0777);
    fake_nvml_library(library, sizeof(library));
    setenv("RANKQUAKE_NVML", library, 1);
    setenv("RANKQUAKE_FAKE_NVML", f->state, 1);
    setenv("RANKQUAKE_DEV", dev, 1);
    fake_nvml_say(f, text);
}

static inline void fake_nvml_drop(struct fake_nvml *f) {
    char path[300];
    for (int i = 0; i < 8; i++) {
        snprintf(path, sizeof(path), "%s/dev/nvidia%d", f->dir, i);
        unlink(path);
    }
    snprintf(path, sizeof(path), "%s/dev", f->dir);
    rmdir(path);
    unlink(f->state);
    rmdir(f->dir);
    unsetenv("RANKQUAKE_NVML");
    unsetenv("RANKQUAKE_FAKE_NVML");
    unsetenv("RANKQUAKE_DEV");
}

/* A descriptor on the file of device i, as a process has that uses it. */
static inline int fake_nvml_hold(const struct fake_nvml *f, int i) {
    char path[300];
    snprintf(path, sizeof(path), "%s/dev/nvidia%d", f->dir, i);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd < 0)
        abort();
    return fd;
}
