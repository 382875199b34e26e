/* What becomes of command lines, to the last field and word: of some hundred that somebody chose (typed.txt, to be read), and of
 * thousands that are drawn of their parts (typed-drawn.txt, a number for each few hundred). `make transcripts` writes both anew. */
#include "tests/agent/typed.h"

#include "agent/options_given.h"
#include "base/rand.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "tests/agent/on_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char chosen[] = "tests/agent/typed.txt", drawn[] = "tests/agent/typed-drawn.txt";

/* ---- chosen ---- */

static void say_chosen(struct buf *out) {
    BUF_FINI struct buf record = {0};
    assert_int_equal(file_read(chosen, 1 << 20, &record, NULL), 0);
    for (char *rest = record.data, *line; rest && (line = strsep(&rest, "\n"));) {
        if (str_starts(line, "$ ")) {
            buf_puts(out, line);
            typed_answer(out, line + 2);
        } else if (line[0] == '#' || (!line[0] && rest)) {
            buf_printf(out, "%s\n", line);
        }
    }
}

/* ---- drawn ---- */

enum { GROUPS = 24, DRAWS = 400, WORDS_MAX = 4, SAID_MAX = 3 };

static const char *const verbs[] = {"", "", "", "", "", "store", "status", "outcome"};

static const char *const words[] = {
    "--nnodes 1",
    "--nnodes 2",
    "--nnodes 1:3",
    "--nnodes 2:3",
    "--nnodes 4",
    "--nproc-per-node 2",
    "--nproc-per-node auto",
    "--nproc-per-node gpu",
    "--nproc-per-node cpu",
    "--standalone",
    "--rdzv-backend embedded",
    "--rdzv-backend c10d",
    "--rdzv-backend etcd-v3",
    "--rdzv-backend etcd",
    "--rdzv-backend static",
    "--rdzv-backend slurm",
    "--rdzv-backend kubernetes",
    "--rdzv-endpoint h",
    "--rdzv-endpoint h:0",
    "--rdzv-endpoint h:7,i",
    "--rdzv-endpoint ''",
    "--rdzv-endpoint [::1]:5",
    "--rdzv-id j",
    "--rdzv-conf profile=fast,hb=1s",
    "--rdzv-conf protocol=https,cacert=/dev/null",
    "--rdzv-conf protocol=http,store_cert=/a",
    "--rdzv-conf store_cert=/a,store_key=/b",
    "--rdzv-conf store_client_ca=/c",
    "--rdzv-conf user=u,password=p",
    "--rdzv-conf user=u,password_file=/v/word",
    "--rdzv-conf password=p",
    "--rdzv-conf token=x",
    "--rdzv-conf token_file=/v/token",
    "--rdzv-conf token_file=/v/empty",
    "--rdzv-conf timeout=9,etcd_prefix=/p",
    "--rdzv-conf lifeline=on",
    "--rdzv-conf lifeline=off,quarantine=never",
    "--rdzv-conf attempt=7,max_free_rounds_per_hour=3",
    "--rdzv-conf key=/dev/null",
    "--max-restarts 4",
    "--compat torchelastic",
    "--standby",
    "--on-node-loss gang",
    "--restart-count node",
    "--restart-count job",
    "--role r",
    "-m",
    "--no-python",
    "--run-path",
    "--log-dir d",
    "--log-dir /dev/null",
    "-r 1",
    "-r 0:3",
    "-t 2",
    "-t 0:1,1:3",
    "--tee 0",
    "--local-ranks-filter 1",
    "--log-format json",
    "--local-addr 10.0.0.1",
    "--shutdown-timeout 40",
    "--node-rank 0",
    "--node-rank 1",
    "--master-addr m",
    "--master-port 7",
    "--signals-to-handle SIGUSR1",
    "--virtual-local-rank",
    "--monitor-interval 1",
    "--numa-binding node",
    "--event-log-handler console",
    "-H a,b",
    "-H me@a:2,[fd00::1]",
    "--hostfile /v/hosts",
    "--accelerators 3",
    "--everywhere",
    "--ssh s",
    "--host 127.0.0.1",
    "--port 8",
    "--quarantine always",
    "--token-file /v/token",
    "--cert /a",
    "--key /b",
    "--client-ca /c",
    "--memory 64",
    "--connections 99",
    "--format json",
    "--dir /shared",
    "--man",
    "--version",
    "--nosuch",
};

static const char *const said[] = {
    "PET_NNODES=2",
    "PET_NPROC_PER_NODE=3",
    "PET_STANDALONE=1",
    "PET_STANDALONE=0",
    "PET_RDZV_BACKEND=etcd-v3",
    "PET_RDZV_BACKEND=c10d",
    "PET_RDZV_ENDPOINT=g:9",
    "PET_RDZV_CONF=hb=1s,token=y",
    "PET_TEE=3",
    "PET_LOG_DIR=e",
    "PET_NODE_RANK=0",
    "PET_HOSTS=a,b",
    "PET_ACCELERATORS=2",
    "OMP_NUM_THREADS=1",
    "GPUS=3",
    "CUDA_VISIBLE_DEVICES=0",
    "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=2",
    "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=<>",
    "RANKRUN_STORE_TOKEN=t",
    "RANKRUN_STORE_PASSWORD=p",
    "RANKRUN_OUTCOME=/o",
    "SLURM_JOB_ID=7",
    "SLURM_RESTART_COUNT=2",
    "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=n[1-3] SLURM_STEP_NUM_NODES=3 "
    "SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=1(x3)",
    "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=n[1-3] SLURM_STEP_NUM_NODES=3 "
    "SLURM_NODEID=2 SLURM_STEP_TASKS_PER_NODE=1(x3)",
    "SRUN=ends",
    "CONF=KillWait=9",
    "JOB_COMPLETION_INDEX=1 FULL_NAME=job-1.svc.ns",
};

#define ONE_OF(list) list[rand_below(&chance, sizeof(list) / sizeof(*list))]

static struct rand chance;
static bool show;

static void draw_line(struct buf *line) {
    for (uint64_t n = rand_below(&chance, SAID_MAX); n; n--)
        buf_printf(line, "%s ", ONE_OF(said));
    buf_printf(line, "rankrun %s", ONE_OF(verbs));
    for (uint64_t n = rand_below(&chance, WORDS_MAX + 1); n; n--)
        buf_printf(line, " %s", ONE_OF(words));
    if (rand_below(&chance, 8))
        buf_puts(line, " a.py x");
}

static uint64_t sum_of(const char *text) {
    uint64_t sum = 0;
    for (; *text; text++) {
        sum = (sum ^ (unsigned char)*text) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 29;
    }
    return sum;
}

static void say_drawn(struct buf *out) {
    rand_init(&chance, 4711);
    for (int group = 0; group < GROUPS; group++) {
        BUF_FINI struct buf all = {0};
        for (int i = 0; i < DRAWS; i++) {
            BUF_FINI struct buf line = {0};
            draw_line(&line);
            buf_printf(&all, "$ %s", buf_str(&line));
            typed_answer(&all, buf_str(&line));
        }
        if (show)
            fputs(buf_str(&all), stdout);
        buf_printf(out, "lines %d to %d: %016" PRIx64 "\n", group * DRAWS, (group + 1) * DRAWS - 1,
                   sum_of(buf_str(&all)));
    }
}

/* ---- the tests ---- */

static void test_each_chosen_line_becomes_what_is_on_record(void **state) {
    (void)state;
    on_record_same(chosen, say_chosen, "the line above it");
}

static void test_thousands_of_drawn_lines_become_what_is_on_record(void **state) {
    (void)state;
    on_record_same(drawn, say_drawn, "SHOW_DRAWN=1 shows them");
}

/* A record that somebody has cut would pass. */
static void test_each_option_is_among_the_chosen_lines(void **state) {
    BUF_FINI struct buf record = {0};
    (void)state;
    assert_int_equal(file_read(chosen, 1 << 20, &record, NULL), 0);
    for (const struct options_row *r = options_rows; r->name; r++) {
        char dashed[64], letter[16];
        snprintf(dashed, sizeof(dashed), " --%s", r->name);
        snprintf(letter, sizeof(letter), " -%c ", r->letter ? r->letter : '?');
        bool typed = false;
        for (const char *line = buf_str(&record); line && !typed; line = strstr(line, "\n$ ")) {
            line += *line == '\n';
            const char *end = line + strcspn(line, "\n"), *at = strstr(line, dashed);
            const char *short_at = strstr(line, letter);
            typed = str_starts(line, "$ ") && ((at && at < end) || (short_at && short_at < end));
        }
        if (!typed)
            fail_msg("no line of %s has --%s", chosen, r->name);
    }
}

/* Ports that two jobs of one host would meet at are drawn of all that there are. */
static void test_the_port_of_hosts_is_drawn_from_10000_to_31999(void **state) {
    (void)state;
    BUF_FINI struct buf said_of_it = {0};
    typed_answer(&said_of_it, "rankrun -H a,b a.py");
    assert_int_equal(typed_options()->endpoint_port, 10000 + 0x1000 % 22000);
}

static int clear(void **state) {
    (void)state;
    typed_fini();
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_chosen_line_becomes_what_is_on_record),
        cmocka_unit_test(test_thousands_of_drawn_lines_become_what_is_on_record),
        cmocka_unit_test(test_each_option_is_among_the_chosen_lines),
        cmocka_unit_test(test_the_port_of_hosts_is_drawn_from_10000_to_31999),
    };
    int rc;
    show = getenv("SHOW_DRAWN");
    clearenv();
    setenv("TMPDIR", "/tmp", 1);
    if (on_record_written(argc, argv, chosen, say_chosen, &rc))
        return on_record_written(argc, argv, drawn, say_drawn, &rc) ? rc : 1;
    return cmocka_run_group_tests(tests, NULL, clear);
}
