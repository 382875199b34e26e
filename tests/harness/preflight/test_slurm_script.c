#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "harness/preflight/slurm_script.h"

static void add(void *arg, const char *sentence) {
    buf_printf(arg, "%s\n", sentence);
}

/* n: how many sentences; part of what they say. */
static void judged(const char *text, int n, const char *part) {
    BUF_FINI struct buf said = {0};
    int found = slurm_script_judge(text, add, &said);
    if (found != n)
        assert_string_equal(buf_str(&said), part);
    if (!strstr(buf_str(&said), part))
        assert_string_equal(buf_str(&said), part);
}

#define HEAD "#!/bin/bash\n#SBATCH --nodes=3 --no-kill --requeue\n"

static void test_a_script_that_survives_is_left_in_peace(void **state) {
    (void)state;
    judged(HEAD "rankrun outcome srun --no-kill rankrun --nnodes 2:3 train.py\n", 0, "");
    judged(HEAD "exec /usr/bin/srun -k -N 3 /opt/bin/rankrun --nnodes=2:3 train.py\n", 0, "");
    judged("#SBATCH -k\nsrun -Qk rankrun --nnodes 2:3 x\n", 0, "");
    judged(
        "#SBATCH --no-kill\nrankrun outcome --dir d srun --no-kill rankrun \\\n  --nnodes 2:3 x\n",
        0, "");
}

static void test_a_job_that_needs_all_of_its_hosts_is_left_in_peace(void **state) {
    (void)state;
    judged("#SBATCH --nodes=3\nsrun rankrun train.py\n", 0, "");
    judged("srun rankrun --nnodes 3 train.py\n", 0, "");
}

static void test_srun_without_no_kill_is_named_with_its_line(void **state) {
    (void)state;
    judged(HEAD "srun rankrun --nnodes 2:3 x\n", 1, "srun in line 3 is without --no-kill");
    judged(HEAD "srun --no-kill=off rankrun --nnodes 2:3 x\n", 1, "srun in line 3 is without");
    judged(HEAD "true\nrankrun outcome srun \\\n -N 3 \\\n rankrun \\\n --nnodes 2:3 --no-kill\n",
           1, "srun in line 4 is without --no-kill");
    judged(HEAD "srun --kill-on-bad-exit rankrun --nnodes 2:3 x\n", 1, "without --no-kill");
}

static void test_sbatch_without_no_kill_is_named(void **state) {
    (void)state;
    judged("#SBATCH --nodes=3\nsrun --no-kill rankrun --nnodes 2:3 x\n", 1, "no #SBATCH --no-kill");
    judged("#SBATCH --nodes=3\n##SBATCH --no-kill\nsrun --no-kill rankrun --nnodes 2:3 x\n", 1,
           "no #SBATCH --no-kill");
    judged("srun rankrun --nnodes 2:3 x\n", 2, "no #SBATCH --no-kill");
}

static void test_several_agents_on_a_host_are_named(void **state) {
    (void)state;
    judged(HEAD "srun --no-kill --ntasks-per-node=4 rankrun --nnodes 2:3 x\n", 1,
           "srun in line 3 starts 4 agents on each host");
    judged("#SBATCH --ntasks-per-node 8\nsrun rankrun x\n", 1, "starts 8 agents");
    judged("#SBATCH --ntasks-per-node=8\nsrun --ntasks-per-node=1 rankrun x\n", 0, "");
}

static void test_what_starts_no_rankrun_is_none_of_ours(void **state) {
    (void)state;
    judged("", -1, "");
    judged(
        "#SBATCH --nodes=3\nsrun hostname\n# srun rankrun --nnodes 2:3 x\nrankrun --nnodes 1 x\n",
        -1, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_script_that_survives_is_left_in_peace),
        cmocka_unit_test(test_a_job_that_needs_all_of_its_hosts_is_left_in_peace),
        cmocka_unit_test(test_srun_without_no_kill_is_named_with_its_line),
        cmocka_unit_test(test_sbatch_without_no_kill_is_named),
        cmocka_unit_test(test_several_agents_on_a_host_are_named),
        cmocka_unit_test(test_what_starts_no_rankrun_is_none_of_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
