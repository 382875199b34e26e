/* faults: the table. One line a fault, alphabetical; faults.c makes the array of it. */
X(agent_kill)
X(node_kill)
X(node_leave)
X(node_poweroff)
X(node_start)
X(worker_kill)
