/* fuzzed: the main program of what AFL++ fuzzes. Built by its compiler it takes one input
 * after the other; by any other, with files it takes each of them once, and with --seeds DIR it
 * writes what a fuzzer begins with. Included by one file of a program. */
#pragma once

#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fuzzed {
    void (*begin)(void);                       /* once, before all else; NULL: nothing to do */
    void (*take)(const char *bytes, size_t n); /* a crash is harm */
    void (*put_seed)(int i, struct buf *out);
    int seeds;
};

/* Of its own length, so that what is read behind it is seen. */
static inline void fuzzed_take(const struct fuzzed *f, const void *bytes, size_t n) {
    char *own = malloc(n ? n : 1);
    if (!own)
        abort(); /* out of memory */
    memcpy(own, bytes, n);
    f->take(own, n);
    free(own);
}

#ifdef __AFL_FUZZ_TESTCASE_LEN
__AFL_FUZZ_INIT();

static inline int fuzzed_main(const struct fuzzed *f, int argc, char **argv) {
    (void)argc, (void)argv;
    if (f->begin)
        f->begin();
    __AFL_INIT();
    const unsigned char *data = __AFL_FUZZ_TESTCASE_BUF;
    while (__AFL_LOOP(10000))
        fuzzed_take(f, data, (size_t)__AFL_FUZZ_TESTCASE_LEN);
    return 0;
}
#else
enum { FUZZED_BYTES_MAX = 256 << 10 };

static inline int fuzzed_write_seeds(const struct fuzzed *f, const char *dir) {
    int wrong = 0;
    for (int i = 0; i < f->seeds; i++) {
        char path[4096];
        struct buf seed = {0};
        snprintf(path, sizeof(path), "%s/%d", dir, i);
        f->put_seed(i, &seed);
        FILE *out = fopen(path, "wb");
        wrong |= !out || fwrite(seed.data, 1, seed.len, out) != seed.len || fclose(out) != 0;
        buf_fini(&seed);
    }
    return wrong;
}

static inline int fuzzed_main(const struct fuzzed *f, int argc, char **argv) {
    static char bytes[FUZZED_BYTES_MAX];
    if (f->begin)
        f->begin();
    if (argc == 3 && strcmp(argv[1], "--seeds") == 0)
        return fuzzed_write_seeds(f, argv[2]);
    for (int i = 1; i < argc; i++) {
        FILE *in = fopen(argv[i], "rb");
        if (!in) {
            perror(argv[i]);
            return 64;
        }
        size_t n = fread(bytes, 1, sizeof(bytes), in);
        fclose(in);
        fuzzed_take(f, bytes, n);
    }
    return 0;
}
#endif
