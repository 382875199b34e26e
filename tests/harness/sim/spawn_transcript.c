/* spawn_transcript: prints the transcript of a schedule file, for `make transcripts`. */
#include "tests/harness/sim/transcripts.h"

int main(int argc, char **argv) {
    struct buf out = {0};
    if (argc != 2 || !transcripts_make(argv[1], &out))
        return 64;
    fputs(buf_str(&out), stdout);
    buf_fini(&out);
    return 0;
}
