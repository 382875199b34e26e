/* From what was published. What we cannot inject (silent data
 * corruption, slow storage) is left out of the counts; a node that is lost is half the time lost
 * silently (power) and half with a reset (kill). */
#include "faults/hazards.h"

const struct hazards hazards[] = {
    {"acme",
     "GPU time lost on 4,704 A100 in six months (arXiv 2403.07648), in per mille: NVLink, CUDA and "
     "ECC errors kill a worker, node failures take a node, network and connection errors cut one "
     "off, framework and script errors end a worker with a status",
     {{"worker-kill", 571},
      {"worker-exit", 179},
      {"node-poweroff", 71.5},
      {"node-kill", 71.5},
      {"net-partition", 79},
      {"worker-hang", 5},
      {0}}},
    {"byterobust",
     "55,366 incidents of 778,135 jobs (arXiv 2509.16293), in per mille: CUDA errors kill a "
     "worker, "
     "hangs, manual restarts are a node that leaves, InfiniBand cuts one off; other explicit "
     "failures, which the paper's table gives together, are half a worker's and half a node's",
     {{"worker-kill", 361},
      {"worker-hang", 99},
      {"node-leave", 173},
      {"net-partition", 29},
      {"worker-exit", 119},
      {"node-kill", 119},
      {0}}},
    {"hsdp",
     "678 interruptions of training on up to 98,000 GPUs (arXiv 2602.00277): HBM, compute and SRAM "
     "errors kill a worker; PCIe, kernel, reboot, maintenance and SSD take a node; switch and "
     "cable "
     "cut one off; NCCL watchdogs are hangs",
     {{"worker-kill", 214},
      {"node-poweroff", 137.5},
      {"node-kill", 137.5},
      {"worker-hang", 61},
      {"worker-exit", 48},
      {"net-partition", 36},
      {0}}},
    {"llama3",
     "419 unexpected interruptions and 47 planned ones of 16,384 H100 in 54 days (arXiv "
     "2407.21783): "
     "GPU, HBM and SRAM errors kill a worker; host, disk and power take a node; switch and NIC cut "
     "one off; software ends a worker with a status; planned is a node that leaves",
     {{"worker-kill", 262},
      {"worker-exit", 56},
      {"node-leave", 47},
      {"net-partition", 42},
      {"node-poweroff", 23},
      {"node-kill", 23},
      {"worker-hang", 7},
      {0}}},
    {"uniform", "every fault as often as every other", {{0}}},
    {0}};
