#include "scenarios/jobs/ranktrain/manual.h"

#include "scenarios/jobs/ranktrain/options.h"

#include "base/completion.h"
#include "base/manual.h"

#include <stdio.h>
#include <string.h>

const char manual_about[] =
    "Trains LeNet-5, a ResNet or a VGG on labelled images, alone or as one rank of a job under "
    "torchrun or rankrun.\nThe last line of rank 0 is the SHA-256 of the weights.\n";

const char manual_after[] =
    "On a GPU it computes by ranktrain_cuda.so beside this program (RANKTRAIN_CUDA names "
    "another\nfile), on the visible device with the number LOCAL_RANK. The model is then "
    "not the CPU's.\n--dist-backend=nccl sums over libnccl.so.2 (NCCL_LIB names another "
    "file), and every worker of\na node needs a GPU of its own.\n\n"
    "Options in RANKTRAIN_OPTIONS, parted by spaces, come before the command line's.\n\n"
    "Exit status: 0, 1 when it failed, 64 for wrong options; it ends by SIGTERM when asked "
    "to.\n";

static const struct completion_command commands[] = {
    {.name = "evaluate", .text = "follow the checkpoints of a training and test each"},
    {.name = "prepare", .text = "bring images into the form that ranks read"},
    {0},
};

struct shown_options {
    char names[OPTIONS_MOST][OPTIONS_NAME];
    struct manual_option v[OPTIONS_MOST + 1];
};

static void put_page(struct buf *out) {
    struct shown_options options = {0};
    options_list(options.v, options.names, OPTIONS_MOST);
    static const char *const synopsis[] = {"ranktrain [OPTION...] [DATA-DIR]",
                                           "ranktrain evaluate --model-dir=DIR [OPTION...]",
                                           "ranktrain prepare --to=DIR [OPTION...]", NULL};
    static const char *const see_also[] = {"rankquake", "rankrun", "rankprobe", NULL};
    const struct manual_part parts[] = {
        {.title = "DESCRIPTION", .text = manual_about},
        {.title = "OPTIONS", .options = options.v},
        {.title = "NOTES", .text = manual_after},
        {0},
    };
    manual_put(out, &(struct manual_page){.name = "ranktrain",
                                          .version = RANKQUAKE_VERSION,
                                          .summary = "reference training job of RankQuake",
                                          .synopsis = synopsis,
                                          .parts = parts,
                                          .see_also = see_also});
}

void manual_print(void) {
    BUF_FINI struct buf page = {0};
    put_page(&page);
    fputs(buf_str(&page), stdout);
}

bool manual_print_script(const char *shell) {
    BUF_FINI struct buf text = {0};
    if (!completion_script(&text, shell, "ranktrain", MANUAL_WORDS)) {
        fprintf(stderr, "ranktrain: --complete=%s: must be bash, fish or zsh\n", shell);
        return false;
    }
    fputs(buf_str(&text), stdout);
    return true;
}

int manual_print_words(const char *const *words, size_t n) {
    struct shown_options options = {0};
    BUF_FINI struct buf text = {0};
    options_list(options.v, options.names, OPTIONS_MOST);
    if (n && strcmp(words[0], "--") == 0) {
        words++;
        n--;
    }
    completion_words(
        &text, &(struct completion){.commands = commands, .options = options.v, .operands = "DIR"},
        words, n);
    fputs(buf_str(&text), stdout);
    return 0;
}
