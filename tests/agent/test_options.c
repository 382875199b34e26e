#include "tests/agent/options_fixture.h"

#include <errno.h>

static void test_one_node_needs_nothing_but_a_program(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun train.py --nnodes=7 x"), 0);
    assert_int_equal(o.verb, OPTIONS_RUN);
    assert_int_equal(o.backend, BACKEND_IN_PROCESS);
    assert_int_equal(o.nodes_min, 1);
    assert_int_equal(o.nodes_max, 1);
    assert_int_equal(o.workers_per_node, 1);
    assert_int_equal(o.max_restarts, 0);
    assert_int_equal(o.shutdown_timeout_ms, 30000);
    assert_string_equal(o.role, "default");
    assert_string_equal(o.rdzv.profile, "default");
    assert_int_equal(o.rdzv.hb_ms, -1);
    assert_null(o.output.log_dir);
    assert_string_equal(o.command[0], "train.py");
    assert_string_equal(o.command[1], "--nnodes=7");
    assert_string_equal(o.command[2], "x");
    assert_null(o.command[3]);
    assert_null(o.notices[0]);
}

static void test_both_spellings_and_both_forms_are_taken(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun --nproc-per-node 2 --max_restarts=3 --nnodes 1:4 "
                           "--rdzv_endpoint=host:1234 --rdzv-id job -m pkg.train"),
                     0);
    assert_int_equal(o.workers_per_node, 2);
    assert_int_equal(o.max_restarts, 3);
    assert_int_equal(o.nodes_min, 1);
    assert_int_equal(o.nodes_max, 4);
    assert_int_equal(o.backend, BACKEND_EMBEDDED);
    assert_string_equal(o.endpoint_host, "host");
    assert_int_equal(o.endpoint_port, 1234);
    assert_string_equal(o.run_id, "job");
    assert_true(o.module);
}

static void test_a_unique_beginning_is_enough_and_another_is_not(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun --nproc=2 --max-r 1 a.py"), 0);
    assert_int_equal(o.workers_per_node, 2);
    REFUSED("rankrun --rdzv=2 a.py", "--rdzv-backend");
    REFUSED("rankrun --n 2 a.py", "write it out");
}

static void test_an_unknown_option_is_named_with_its_nearest(void **state) {
    (void)state;
    REFUSED("rankrun --max-restart=3 --nodes 2 a.py", "did you mean --nnodes");
    REFUSED("rankrun --colour a.py", "--colour");
    REFUSED("rankrun -x a.py", "-x");
    REFUSED("rankrun --nnodes", "needs a value");
    REFUSED("rankrun --standalone=yes a.py", "takes no value");
    REFUSED("rankrun --standalone", "no program to run");
}

static void test_the_number_of_nodes_is_checked(void **state) {
    (void)state;
    REFUSED("rankrun --nnodes 0 a.py", "--nnodes 0");
    REFUSED("rankrun --nnodes 3:2 a.py", "1 <= MIN <= MAX");
    REFUSED("rankrun --nnodes 1:2:3 a.py", "--nnodes 1:2:3");
    REFUSED("rankrun --nnodes x a.py", "--nnodes x");
    REFUSED("rankrun --nnodes 2 a.py", "--rdzv-endpoint");
    REFUSED("rankrun --standalone --nnodes 2 a.py", "one node");
}

static void test_the_number_of_workers_is_checked(void **state) {
    (void)state;
    REFUSED("rankrun --nproc-per-node 0 a.py", "--nproc-per-node 0");
    REFUSED("rankrun --nproc-per-node foo a.py", "gpu or auto");
    assert_int_equal(parse("rankrun --nproc-per-node cpu a.py"), 0);
    assert_true(o.workers_per_node >= 1);
    assert_int_equal(parse("rankrun --nproc-per-node auto a.py"), 0);
    assert_true(o.workers_per_node >= 1);
}

static void test_the_environment_fills_what_the_command_line_leaves_open(void **state) {
    (void)state;
    setenv("PET_NPROC_PER_NODE", "3", 1);
    setenv("PET_MAX_RESTARTS", "5", 1);
    setenv("PET_STANDALONE", "1", 1);
    assert_int_equal(parse("rankrun --max-restarts=1 a.py"), 0);
    assert_int_equal(o.workers_per_node, 3);
    assert_int_equal(o.max_restarts, 1);
    assert_true(o.standalone);
    setenv("PET_STANDALONE", "", 1);
    REFUSED("rankrun a.py", "PET_STANDALONE");
    setenv("PET_STANDALONE", "0", 1);
    setenv("PET_NPROC_PER_NODE", "x", 1);
    REFUSED("rankrun a.py", "PET_NPROC_PER_NODE in the environment");
    REFUSED("rankrun --nproc-per-node=y a.py", "--nproc-per-node y");
    assert_null(strstr(err.msg, "PET_"));
    setenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "soon", 1);
    REFUSED("rankrun --nproc-per-node=1 a.py", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT soon");
    unsetenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
    unsetenv("PET_NPROC_PER_NODE");
    unsetenv("PET_MAX_RESTARTS");
    unsetenv("PET_STANDALONE");
}

static void test_torchruns_other_variables_change_nothing(void **state) {
    static const char *const names[] = {"LOGLEVEL", "TORCHELASTIC_HEALTH_CHECK_PORT",
                                        "TORCH_ELASTIC_WORKER_IDENTICAL",
                                        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", NULL};
    (void)state;
    for (const char *const *n = names; *n; n++)
        setenv(*n, "1", 1);
    test_one_node_needs_nothing_but_a_program(state);
    for (const char *const *n = names; *n; n++)
        unsetenv(*n);
}

static void test_standalone_wins_over_every_rendezvous_option(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun --standalone --rdzv-backend=etcd-v3 --rdzv-endpoint=h a.py"),
                     0);
    assert_int_equal(o.backend, BACKEND_IN_PROCESS);
    assert_null(o.endpoint_host);
    char first[64];
    strcpy(first, o.run_id);
    assert_int_equal(parse("rankrun --standalone a.py"), 0);
    assert_string_not_equal(first, o.run_id);
    TAKEN("rankrun a.py");
    assert_string_not_equal(o.run_id, "none");
    TAKEN("rankrun --master-port 29511 a.py");
    assert_string_equal(o.run_id, "none");
}

static void test_standalone_with_an_etcd_and_no_endpoint_starts_one(void **state) {
    (void)state;
    TAKEN("rankrun --standalone --rdzv-backend=etcd-v3 a.py");
    assert_true(o.own_etcd);
    assert_int_equal(o.backend, BACKEND_ETCD_V3);
    assert_string_equal(o.endpoint_host, "127.0.0.1");
    assert_string_not_equal(o.run_id, "none");
    TAKEN("rankrun --standalone --rdzv-backend etcd --rdzv-conf protocol=https a.py");
    assert_int_equal(o.backend, BACKEND_ETCD_LEGACY);
    assert_false(o.rdzv.access.https);
    assert_non_null(strstr(o.notices[0], "neither TLS nor users"));
    TAKEN("rankrun --standalone --rdzv-backend c10d a.py");
    assert_int_equal(o.backend, BACKEND_IN_PROCESS);
    /* What is said of the cluster is not said of this job. */
    setenv("PET_RDZV_BACKEND", "etcd", 1);
    TAKEN("rankrun --standalone a.py");
    assert_int_equal(o.backend, BACKEND_IN_PROCESS);
    unsetenv("PET_RDZV_BACKEND");
}

static void test_etcd_is_torchelastics_own_with_its_names_of_settings(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun --nnodes 2 --rdzv-backend=etcd --rdzv-endpoint=h "
                           "--rdzv-conf timeout=90,etcd_prefix=/jobs,protocol=http a.py"),
                     0);
    assert_int_equal(o.backend, BACKEND_ETCD_LEGACY);
    assert_string_equal(o.endpoints, "h:2379");
    assert_int_equal(o.rdzv.join_timeout_ms, 90000);
    assert_string_equal(o.rdzv.etcd_prefix, "/jobs");
    REFUSED(
        "rankrun --nnodes 2 --rdzv-backend=etcd --rdzv-endpoint=h --rdzv-conf protocol=ftp a.py",
        "must be http or https");
    REFUSED("rankrun --nnodes 2 --rdzv-backend=etcd --rdzv-endpoint=h --rdzv-conf timeout=x a.py",
            "timeout=x");
    REFUSED("rankrun --nnodes 2 --rdzv-backend=etcd --rdzv-endpoint=a,b x.py", "several members");
    REFUSED("rankrun --nnodes 2 --rdzv-backend=etcd --rdzv-endpoint=a --standby x.py",
            "wait as spares there");
    assert_int_equal(parse("rankrun --nnodes 2 --rdzv-backend=etcd --rdzv-endpoint=h "
                           "--rdzv-conf hb=1s a.py"),
                     0);
    assert_non_null(strstr(o.notices[0], "hb has no effect with --rdzv-backend etcd"));
    REFUSED("rankrun --nnodes 2 --rdzv-backend=etcd a.py", "--rdzv-endpoint=HOST:2379");
}

static void test_backends_that_are_not_built_yet_say_so(void **state) {
    (void)state;
    REFUSED("rankrun --nnodes 2 --rdzv-backend=etcd-v2 --rdzv-endpoint=h:1 a.py", "etcd-v3");
    REFUSED("rankrun --nnodes 2 --rdzv-backend=etcd3 --rdzv-endpoint=h:1 a.py",
            "did you mean etcd");
    REFUSED("rankrun --nnodes 2 --rdzv-backend=embedded a.py", "--rdzv-endpoint=HOST:29400");
}

static void test_fixed_ranks_have_their_store_beside_the_master(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun --nnodes 2 --node-rank=1 --master-addr=h a.py"), 0);
    assert_int_equal(o.backend, BACKEND_EMBEDDED);
    assert_int_equal(o.node_rank, 1);
    assert_string_equal(o.master_addr, "h");
    assert_int_equal(o.master_port, 29500);
    assert_string_equal(o.endpoint_host, "h");
    assert_int_equal(o.endpoint_port, 29501);
    assert_int_equal(parse("rankrun --nnodes 2 --rdzv-backend=static --rdzv-endpoint=g:1000 a.py"),
                     0);
    assert_string_equal(o.master_addr, "g");
    assert_int_equal(o.endpoint_port, 1001);
    assert_int_equal(o.node_rank, 0);
    assert_int_equal(parse("rankrun --nnodes 2 --rdzv-backend=static --rdzv-endpoint=g:65534 a.py"),
                     0);
    assert_int_equal(o.endpoint_port, 65535);
    REFUSED("rankrun --nnodes 2 --rdzv-backend=static --rdzv-endpoint=g:65535 a.py",
            "--rdzv-endpoint g:65535: the port must be at most 65534");
    REFUSED("rankrun --nnodes 2 --rdzv-backend=static --rdzv-endpoint=g,h a.py",
            "--rdzv-endpoint g,h: only --rdzv-backend etcd-v3 has several");
    REFUSED("rankrun --nnodes 1:2 --node-rank=0 a.py", "the number of nodes is fixed");
    REFUSED("rankrun --nnodes 2 --node-rank=2 a.py", "must be 0 to 1");
    REFUSED("rankrun --nnodes 2 --node-rank=0 --master-port x a.py", "--master-port x");
    REFUSED("rankrun --nnodes 2 a.py", "needs a store");
}

static void test_the_masters_port_of_one_node_is_the_one_asked_for(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun --master-port=29501 a.py"), 0);
    assert_int_equal(o.backend, BACKEND_IN_PROCESS);
    assert_int_equal(o.master_port, 29501);
    assert_string_equal(o.master_addr, "127.0.0.1");
    assert_int_equal(parse("rankrun --rdzv-backend=static --node-rank 0 a.py"), 0);
    assert_int_equal(o.master_port, 0);
    assert_null(o.master_addr);
}

static void test_with_a_named_store_fixed_ranks_are_not_used(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun --nnodes 2 --node-rank=1 --rdzv-backend=embedded "
                           "--rdzv-endpoint=h a.py"),
                     0);
    assert_non_null(strstr(o.notices[0], "are not used: the rendezvous gives the ranks"));
    assert_int_equal(o.node_rank, -1);
}

static void test_an_etcd_may_have_several_members(void **state) {
    (void)state;
    assert_int_equal(
        parse("rankrun --nnodes 2 --rdzv-backend=etcd-v3 --rdzv-endpoint=a,b:1,[::1]:2 x.py"), 0);
    assert_string_equal(o.endpoints, "a:2379,b:1,[::1]:2");
    assert_string_equal(o.endpoint_host, "a");
    assert_int_equal(o.endpoint_port, 2379);
    REFUSED("rankrun --nnodes 2 --rdzv-backend=etcd-v3 --rdzv-endpoint=a,,b x.py",
            "--rdzv-endpoint");
    REFUSED("rankrun --nnodes 2 --rdzv-endpoint=a,b x.py",
            "only --rdzv-backend etcd-v3 has several");
}

static void test_c10d_is_the_embedded_store_with_a_word_of_warning(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun --nnodes 2 --rdzv-backend=c10d --rdzv-endpoint=h a.py"), 0);
    assert_int_equal(o.backend, BACKEND_EMBEDDED);
    assert_int_equal(o.endpoint_port, 29400);
    assert_non_null(strstr(o.notices[0], "torchrun agent cannot join"));
    assert_int_equal(parse("rankrun --nnodes 2 --rdzv-backend=etcd-v3 --rdzv-endpoint=h a.py"), 0);
    assert_int_equal(o.endpoint_port, 2379);
}

/* As torchrun's manual has it for several jobs on one host. */
static void test_port_0_is_for_one_node_which_opens_none(void **state) {
    (void)state;
    static const char *const lines[] = {
        "rankrun --nnodes 1 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 a.py",
        "rankrun --nnodes 1:4 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 --rdzv-id 7 a.py",
        "rankrun --nproc_per_node=2 --rdzv_endpoint [::1]:0 a.py"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        assert_int_equal(parse(lines[i]), 0);
        assert_int_equal(o.backend, BACKEND_IN_PROCESS);
        assert_int_equal(o.nodes_max, 1);
        assert_string_equal(o.run_id, i == 1 ? "7" : "none");
        for (size_t k = 0; o.notices[k]; k++)
            assert_null(strstr(o.notices[k], "c10d"));
    }
    REFUSED("rankrun --nnodes 2 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 a.py",
            "no other node can know; give a port, or --nnodes=1");
    REFUSED("rankrun --nnodes 2:4 --rdzv-endpoint=localhost:0 a.py", "no other node can know");
    REFUSED("rankrun --rdzv-backend=etcd --rdzv-endpoint=localhost:0 a.py", "is no endpoint");
}

static void test_rendezvous_keys_take_their_units(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun --rdzv-conf profile=fast,hb=150ms,suspect=0.8s,join_timeout=60,"
                           "last_call_timeout=2s,attempt=a7 a.py"),
                     0);
    assert_string_equal(o.rdzv.profile, "fast");
    assert_int_equal(o.rdzv.hb_ms, 150);
    assert_int_equal(o.rdzv.suspect_ms, 800);
    assert_int_equal(o.rdzv.join_timeout_ms, 60000);
    assert_int_equal(o.rdzv.last_call_timeout_ms, 2000);
    assert_string_equal(o.rdzv.attempt, "a7");
    assert_int_equal(o.rdzv.fence_ms, -1);
    REFUSED("rankrun --rdzv-conf hb=150 a.py", "hb=150");
    REFUSED("rankrun --rdzv-conf profile=quick a.py", "fast or default");
}

static void test_unknown_rendezvous_keys_are_refused_when_near_ours_and_else_told(void **state) {
    (void)state;
    REFUSED("rankrun --rdzv-conf supsect=2s a.py", "did you mean suspect");
    REFUSED("rankrun --rdzv-conf a a.py", "option 'a' must have a value specified");
    REFUSED("rankrun --rdzv-conf hb=1s, a.py", "<key1>=<value1>");
    REFUSED("rankrun --rdzv-conf hb a.py", "hb=150ms");
    REFUSED("rankrun --rdzv-conf join_timeout= a.py", "join_timeout=30");
    REFUSED("rankrun --rdzv-conf profile a.py", "profile=fast");
    assert_int_equal(parse("rankrun --rdzv-conf is_host=1,timeout=900,my_plug_in=x a.py"), 0);
    assert_non_null(strstr(o.notices[0], "is_host has no effect"));
    assert_non_null(strstr(o.notices[1], "timeout has no effect"));
    assert_non_null(strstr(o.notices[2], "my_plug_in is not known"));
    assert_null(o.notices[3]);
}

static void test_spares_gangs_and_lifelines_are_said_by_words(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun --nnodes=1:2 --rdzv-endpoint=h a.py"), 0);
    assert_false(o.standby || o.gang || o.rdzv.no_lifeline);
    assert_int_equal(parse("rankrun --nnodes=1:2 --rdzv-endpoint=h --standby --on-node-loss=gang "
                           "--rdzv-conf=lifeline=off a.py"),
                     0);
    assert_true(o.standby && o.gang && o.rdzv.no_lifeline);
    assert_int_equal(parse("rankrun --nnodes=1:2 --rdzv-endpoint=h --on_node_loss replace "
                           "--rdzv-conf=lifeline=on a.py"),
                     0);
    assert_false(o.gang || o.rdzv.no_lifeline);
    REFUSED("rankrun --on-node-loss=all a.py", "replace or gang");
    REFUSED("rankrun --nnodes=1:2 --rdzv-endpoint=h --rdzv-conf=lifeline=maybe a.py", "on or off");
}

static void test_the_defaults_of_torchelastic_hold_where_nothing_is_said(void **state) {
    (void)state;
    assert_int_equal(
        parse("rankrun --compat torchelastic --nnodes=4 --nproc_per_node=8 --rdzv_id=j "
              "--rdzv_endpoint=h:2379 a.py"),
        0);
    assert_int_equal(o.max_restarts, 3);
    assert_int_equal(o.workers_per_node, 8);
    assert_int_equal(o.backend, BACKEND_ETCD_LEGACY);
    assert_int_equal(parse("rankrun --compat=torchelastic --standalone --max_restarts=0 a.py"), 0);
    assert_int_equal(o.max_restarts, 0);
    assert_int_equal(o.backend, BACKEND_IN_PROCESS);
    assert_int_equal(parse("rankrun --compat torchelastic --nnodes=2 --rdzv_backend=embedded "
                           "--rdzv_endpoint=h a.py"),
                     0);
    assert_int_equal(o.backend, BACKEND_EMBEDDED);
    assert_int_equal(parse("rankrun a.py"), 0);
    assert_int_equal(o.max_restarts, 0);
    REFUSED("rankrun --compat=torchrun a.py", "--compat torchrun: must be torchelastic");
}

static void test_a_command_is_run_everywhere_as_it_stands(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun -H a,b:2 --everywhere hostname -f"), 0);
    assert_int_equal(o.verb, OPTIONS_HOSTS);
    assert_true(o.everywhere);
    assert_int_equal(o.hosts.n, 2);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(o.host_argv[i][0], "hostname");
        assert_string_equal(o.host_argv[i][1], "-f");
        assert_null(o.host_argv[i][2]);
    }
    assert_null(o.host_token);
    REFUSED("rankrun --everywhere hostname", "--everywhere goes with --hosts or --hostfile");
    REFUSED("rankrun -H a --everywhere --nnodes=2 hostname",
            "--nnodes=2: with --everywhere no job");
}

static void test_accelerators_without_hosts_are_those_of_this_one(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun --accelerators 4 a.py"), 0);
    assert_int_equal(o.verb, OPTIONS_RUN);
    assert_int_equal(o.workers_per_node, 4);
    REFUSED("rankrun --accelerators 4 --nproc-per-node 2 a.py", "give one of them");
    REFUSED("rankrun --accelerators none a.py", "must be 1 to");
}

static void test_restarts_are_counted_by_job_or_node(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun a.py"), 0);
    assert_false(o.restarts_by_node);
    assert_int_equal(parse("rankrun --restart-count=node a.py"), 0);
    assert_true(o.restarts_by_node);
    assert_int_equal(parse("rankrun --restart_count job a.py"), 0);
    assert_false(o.restarts_by_node);
    REFUSED("rankrun --restart-count=agent a.py", "job or node");
    REFUSED("rankrun --rdzv-backend etcd --rdzv-endpoint h --restart-count=job a.py", "for itself");
    assert_int_equal(
        parse("rankrun --rdzv-backend etcd --rdzv-endpoint h --restart-count=node a.py"), 0);
}

static void test_free_rounds_and_the_quarantine_are_settings_of_the_rendezvous(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun a.py"), 0);
    assert_int_equal(o.rdzv.max_free_rounds, 500);
    assert_string_equal(o.rdzv.quarantine, "auto");
    assert_int_equal(parse("rankrun --rdzv-conf max_free_rounds_per_hour=3,quarantine=never a.py"),
                     0);
    assert_int_equal(o.rdzv.max_free_rounds, 3);
    assert_string_equal(o.rdzv.quarantine, "never");
    assert_int_equal(parse("rankrun --rdzv-conf max_free_rounds_per_hour=0 a.py"), 0);
    assert_int_equal(o.rdzv.max_free_rounds, 0);
    REFUSED("rankrun --rdzv-conf max_free_rounds_per_hour=-1 a.py", "from 0");
    REFUSED("rankrun --rdzv-conf max_free_rounds_per_hour=few a.py", "few");
    REFUSED("rankrun --rdzv-conf quarantine=maybe a.py", "auto, always or never");
}

static void test_a_job_that_slurm_requeues_is_another_attempt(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun a.py"), 0);
    assert_null(o.rdzv.attempt);
    setenv("SLURM_JOB_ID", "4711", 1);
    assert_int_equal(parse("rankrun a.py"), 0);
    assert_string_equal(o.rdzv.attempt, "slurm-4711-0");
    setenv("SLURM_RESTART_COUNT", "2", 1);
    assert_int_equal(parse("rankrun a.py"), 0);
    assert_string_equal(o.rdzv.attempt, "slurm-4711-2");
    assert_int_equal(parse("rankrun --rdzv-conf attempt=mine a.py"), 0);
    assert_string_equal(o.rdzv.attempt, "mine");
}

static void test_several_workers_without_omp_num_threads_are_told(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun --nproc-per-node=2 a.py"), 0);
    assert_non_null(strstr(o.notices[0], "OMP_NUM_THREADS"));
    setenv("OMP_NUM_THREADS", "4", 1);
    assert_int_equal(parse("rankrun --nproc-per-node=2 a.py"), 0);
    assert_null(o.notices[0]);
}

static void test_the_other_values_are_checked_and_named(void **state) {
    (void)state;
    REFUSED("rankrun --max-restarts -1 a.py", "--max-restarts -1");
    REFUSED("rankrun --no-python -m x", "'--no-python' flag");
    REFUSED("rankrun --rdzv-id a/b a.py", "--rdzv-id a/b");
    REFUSED("rankrun --shutdown-timeout soon a.py", "--shutdown-timeout soon");
    REFUSED("rankrun --nnodes 2 --rdzv-endpoint h:99999 a.py", "--rdzv-endpoint");
    assert_int_equal(parse("rankrun --shutdown-timeout 1500ms a.py"), 0);
    assert_int_equal(o.shutdown_timeout_ms, 1500);
    assert_int_equal(parse("rankrun --monitor-interval 0.1 --start-method fork a.py"), 0);
    assert_non_null(strstr(o.notices[0], "--monitor-interval has no effect"));
    assert_non_null(strstr(o.notices[1], "--start-method has no effect"));
}

static void test_the_store_has_its_own_options(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun store"), 0);
    assert_int_equal(o.verb, OPTIONS_STORE);
    assert_string_equal(o.store_host, "0.0.0.0");
    assert_int_equal(o.store_port, 29400);
    assert_int_equal(parse("rankrun store --host=127.0.0.2 --port 0"), 0);
    assert_string_equal(o.store_host, "127.0.0.2");
    assert_int_equal(o.store_port, 0);
    assert_string_equal(o.store_quarantine, "auto");
    assert_int_equal(o.store_memory_mb, 256);
    assert_int_equal(o.store_connections, 0);
    TAKEN("rankrun store --log-format json");
    assert_true(o.log_json);
    assert_int_equal(parse("rankrun store --quarantine=always"), 0);
    assert_string_equal(o.store_quarantine, "always");
    REFUSED("rankrun store --quarantine=no", "auto, always or never");
    assert_int_equal(parse("rankrun store --memory 64 --connections 100 --allow-host a.org,b.org"),
                     0);
    assert_int_equal(o.store_memory_mb, 64);
    assert_int_equal(o.store_connections, 100);
    assert_string_equal(o.store_names, "a.org,b.org");
    REFUSED("rankrun store --memory 15", "--memory 15: must be a number of megabytes from 16");
    REFUSED("rankrun store --connections many", "--connections many: must be a number from 16");
    REFUSED("rankrun store --nnodes 2", "--nnodes");
    REFUSED("rankrun store --port 70000", "70000");
    REFUSED("rankrun store here", "here");
}

static void test_a_status_asks_a_store_that_others_can_reach(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun status --rdzv_endpoint=h --rdzv-id j --format json"), 0);
    assert_int_equal(o.verb, OPTIONS_STATUS);
    assert_string_equal(o.endpoints, "h:29400");
    assert_string_equal(o.run_id, "j");
    assert_true(o.status_json);
    assert_int_equal(parse("rankrun status --rdzv-backend etcd-v3 --rdzv-endpoint h,i"), 0);
    assert_string_equal(o.endpoints, "h:2379,i:2379");
    assert_string_equal(o.run_id, "none");
    assert_false(o.status_json);
    TAKEN("rankrun status --rdzv-backend etcd-v3 --rdzv-endpoint h --rdzv-conf "
          "profile=fast,hb=100ms,protocol=https,cert=/dev/null,user=me,password=x "
          "--log-format json");
    assert_true(o.log_json && o.rdzv.access.https);
    assert_string_equal(o.rdzv.access.user, "me");
    REFUSED("rankrun status --rdzv-endpoint h --rdzv-conf profil=fast", "did you mean profile");
    REFUSED("rankrun status", "needs --rdzv-endpoint");
    REFUSED("rankrun status --rdzv-endpoint h --format xml", "must be text or json");
    REFUSED("rankrun status --rdzv-endpoint h job", "takes no arguments");
    REFUSED("rankrun status --nnodes 2 --rdzv-endpoint h", "unknown option --nnodes");
    REFUSED("rankrun status --rdzv-backend static --rdzv-endpoint h", "port after");
    TAKEN("rankrun status --rdzv-backend etcd --rdzv-endpoint h --rdzv-conf etcd_prefix=/p");
    assert_int_equal(o.backend, BACKEND_ETCD_LEGACY);
    assert_string_equal(o.rdzv.etcd_prefix, "/p");
    REFUSED("rankrun --format json a.py", "unknown option --format");
    assert_int_equal(parse("rankrun --log-format json a.py"), 0);
    assert_true(o.log_json);
    REFUSED("rankrun --log-format xml a.py", "must be text or json");
}

static void test_help_and_version_need_no_program(void **state) {
    (void)state;
    assert_int_equal(parse("rankrun --help"), 0);
    assert_int_equal(o.verb, OPTIONS_HELP);
    assert_int_equal(parse("rankrun -h"), 0);
    assert_int_equal(o.verb, OPTIONS_HELP);
    assert_int_equal(parse("rankrun --version"), 0);
    assert_int_equal(o.verb, OPTIONS_VERSION);
}

int main(int argc, char **argv) {
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_one_node_needs_nothing_but_a_program, clear),
        cmocka_unit_test_teardown(test_both_spellings_and_both_forms_are_taken, clear),
        cmocka_unit_test_teardown(test_etcd_is_torchelastics_own_with_its_names_of_settings, clear),
        cmocka_unit_test_teardown(test_fixed_ranks_have_their_store_beside_the_master, clear),
        cmocka_unit_test_teardown(test_the_masters_port_of_one_node_is_the_one_asked_for, clear),
        cmocka_unit_test_teardown(test_with_a_named_store_fixed_ranks_are_not_used, clear),
        cmocka_unit_test_teardown(test_an_etcd_may_have_several_members, clear),
        cmocka_unit_test_teardown(test_a_unique_beginning_is_enough_and_another_is_not, clear),
        cmocka_unit_test_teardown(test_an_unknown_option_is_named_with_its_nearest, clear),
        cmocka_unit_test_teardown(test_the_number_of_nodes_is_checked, clear),
        cmocka_unit_test_teardown(test_the_number_of_workers_is_checked, clear),
        cmocka_unit_test_teardown(test_the_environment_fills_what_the_command_line_leaves_open,
                                  clear),
        cmocka_unit_test_teardown(test_torchruns_other_variables_change_nothing, clear),
        cmocka_unit_test_teardown(test_standalone_wins_over_every_rendezvous_option, clear),
        cmocka_unit_test_teardown(test_standalone_with_an_etcd_and_no_endpoint_starts_one, clear),
        cmocka_unit_test_teardown(test_backends_that_are_not_built_yet_say_so, clear),
        cmocka_unit_test_teardown(test_port_0_is_for_one_node_which_opens_none, clear),
        cmocka_unit_test_teardown(test_c10d_is_the_embedded_store_with_a_word_of_warning, clear),
        cmocka_unit_test_teardown(test_rendezvous_keys_take_their_units, clear),
        cmocka_unit_test_teardown(
            test_unknown_rendezvous_keys_are_refused_when_near_ours_and_else_told, clear),
        cmocka_unit_test_teardown(test_spares_gangs_and_lifelines_are_said_by_words, clear),
        cmocka_unit_test_teardown(test_the_defaults_of_torchelastic_hold_where_nothing_is_said,
                                  clear),
        cmocka_unit_test_teardown(test_a_command_is_run_everywhere_as_it_stands, clear),
        cmocka_unit_test_teardown(test_accelerators_without_hosts_are_those_of_this_one, clear),
        cmocka_unit_test_teardown(test_restarts_are_counted_by_job_or_node, clear),
        cmocka_unit_test_teardown(
            test_free_rounds_and_the_quarantine_are_settings_of_the_rendezvous, clear),
        cmocka_unit_test_teardown(test_a_job_that_slurm_requeues_is_another_attempt, clear),
        cmocka_unit_test_teardown(test_several_workers_without_omp_num_threads_are_told, clear),
        cmocka_unit_test_teardown(test_the_other_values_are_checked_and_named, clear),
        cmocka_unit_test_teardown(test_the_store_has_its_own_options, clear),
        cmocka_unit_test_teardown(test_a_status_asks_a_store_that_others_can_reach, clear),
        cmocka_unit_test_teardown(test_help_and_version_need_no_program, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
