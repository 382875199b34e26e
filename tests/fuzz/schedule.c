/* A fuzzer's schedules, for AFL++: any bytes are one, and a broken invariant is a crash. With a
 * file it plays that one and writes the schedule to standard output, for `rankquake sim
 * --scenario`. */
#include "harness/sim/script.h"
#include "harness/sim/shrink.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BYTES_MAX = 200 };

#ifdef __AFL_FUZZ_TESTCASE_LEN
__AFL_FUZZ_INIT();

int main(void) {
    __AFL_INIT();
    const unsigned char *data = __AFL_FUZZ_TESTCASE_BUF;
    while (__AFL_LOOP(1000)) {
        struct sim_schedule s;
        struct sim_result r;
        sim_decode(data, (size_t)__AFL_FUZZ_TESTCASE_LEN, &s);
        sim_play(&s, false, &r);
        sim_schedule_fini(&s);
        if (r.violated)
            abort();
    }
    return 0;
}
#else
int main(int argc, char **argv) {
    uint8_t data[BYTES_MAX];
    char invariant[32];
    FILE *f = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!f) {
        fprintf(stderr, "usage: %s FILE: the schedule that its bytes are\n", argv[0]);
        return 64;
    }
    size_t n = fread(data, 1, sizeof(data), f);
    struct script s = {.name = "fuzzed"};
    struct sim_result r;
    struct buf text = {0};
    fclose(f);
    sim_decode(data, n, &s.schedule);
    sim_play(&s.schedule, false, &r);
    s.breaks = r.violated ? shrink_invariant(r.text, invariant) : NULL;
    s.found = r.violated ? r.text : NULL;
    script_write(&s, &text);
    fputs(buf_str(&text), stdout);
    buf_fini(&text);
    sim_schedule_fini(&s.schedule);
    return r.violated;
}
#endif
