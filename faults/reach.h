/* reach: how far a fault may reach beyond the job that it is tried on, for people who must allow it
 * first. In order: what is worse comes later. */
#pragma once

enum fault_reach {
    REACH_JOB,    /* processes, files and clocks of the job alone */
    REACH_NODE,   /* a host as a whole, or its network or disk: whatever else runs there feels it */
    REACH_SHARED, /* what several jobs may share: a store */
    REACHES_N
};
extern const char *const fault_reach_names[REACHES_N + 1]; /* "job" ..., NULL-ended */

/* Each fault of the table (faults.h) has a row; one without does not compile. */
#define FAULT_REACHES(X)                                                                           \
    X(agent_hang, JOB)                                                                             \
    X(agent_kill, JOB)                                                                             \
    X(agent_signal, JOB)                                                                           \
    X(clock_boot, JOB)                                                                             \
    X(clock_drift, JOB)                                                                            \
    X(clock_jump, JOB)                                                                             \
    X(clock_monotonic, JOB)                                                                        \
    X(clock_strobe, JOB)                                                                           \
    X(disk_error, NODE)                                                                            \
    X(disk_full, NODE)                                                                             \
    X(disk_late, NODE)                                                                             \
    X(disk_readonly, NODE)                                                                         \
    X(disk_short, NODE)                                                                            \
    X(disk_slow, NODE)                                                                             \
    X(disk_stuck, NODE)                                                                            \
    X(file_delete, JOB)                                                                            \
    X(file_flip, JOB)                                                                              \
    X(file_foreign, JOB)                                                                           \
    X(file_stale, JOB)                                                                             \
    X(file_swap, JOB)                                                                              \
    X(file_truncate, JOB)                                                                          \
    X(memory_flip, JOB)                                                                            \
    X(net_block, NODE)                                                                             \
    X(net_corrupt, NODE)                                                                           \
    X(net_corrupt_silent, NODE)                                                                    \
    X(net_delay, NODE)                                                                             \
    X(net_dns_fail, NODE)                                                                          \
    X(net_dns_wrong, NODE)                                                                         \
    X(net_duplicate, NODE)                                                                         \
    X(net_flap, NODE)                                                                              \
    X(net_half_open, NODE)                                                                         \
    X(net_loss, NODE)                                                                              \
    X(net_mtu, NODE)                                                                               \
    X(net_partition, NODE)                                                                         \
    X(net_rate, NODE)                                                                              \
    X(net_refuse, NODE)                                                                            \
    X(net_reorder, NODE)                                                                           \
    X(net_reset, NODE)                                                                             \
    X(node_cpu, NODE)                                                                              \
    X(node_cpu_steal, NODE)                                                                        \
    X(node_flap, NODE)                                                                             \
    X(node_freeze, NODE)                                                                           \
    X(node_kill, NODE)                                                                             \
    X(node_leave, NODE)                                                                            \
    X(node_memory, NODE)                                                                           \
    X(node_pids, NODE)                                                                             \
    X(node_poweroff, NODE)                                                                         \
    X(node_preempt, NODE)                                                                          \
    X(node_reboot, NODE)                                                                           \
    X(node_reclaim, NODE)                                                                          \
    X(node_start, NODE)                                                                            \
    X(slurm_cancel, JOB)                                                                           \
    X(slurm_controller_kill, SHARED)                                                               \
    X(slurm_daemon_kill, NODE)                                                                     \
    X(slurm_drain, NODE)                                                                           \
    X(slurm_node_down, NODE)                                                                       \
    X(slurm_preempt, SHARED)                                                                       \
    X(slurm_requeue, JOB)                                                                          \
    X(slurm_time_limit, JOB)                                                                       \
    X(store_answer_lost, SHARED)                                                                   \
    X(store_compact, SHARED)                                                                       \
    X(store_freeze, SHARED)                                                                        \
    X(store_full, SHARED)                                                                          \
    X(store_kill, SHARED)                                                                          \
    X(store_lease_lost, SHARED)                                                                    \
    X(store_restart, SHARED)                                                                       \
    X(store_signal, SHARED)                                                                        \
    X(store_slow, SHARED)                                                                          \
    X(worker_abort, JOB)                                                                           \
    X(worker_child_kill, JOB)                                                                      \
    X(worker_deaf, JOB)                                                                            \
    X(worker_exit, JOB)                                                                            \
    X(worker_fds, JOB)                                                                             \
    X(worker_file_size, JOB)                                                                       \
    X(worker_gil_hang, JOB)                                                                        \
    X(worker_hang, JOB)                                                                            \
    X(worker_kill, JOB)                                                                            \
    X(worker_memory, JOB)                                                                          \
    X(worker_orphan, JOB)                                                                          \
    X(worker_processes, JOB)                                                                       \
    X(worker_segfault, JOB)                                                                        \
    X(worker_signal, JOB)                                                                          \
    X(worker_slow, JOB)                                                                            \
    X(worker_thread_hang, JOB)

/* A fault by its name, which there must be. */
enum fault_reach fault_reach(const char *name);
