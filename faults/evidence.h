/* evidence: the table of what can show that a fault was felt. One line a kind, alphabetical;
 * fault.h makes the names of it, and harness/run/evidence/ has a file for each. */
X(agent_start)
X(frames_delayed)
X(frames_dropped)
X(links_cut)
X(signal_taken)
X(target_exit)
X(target_stopped)
