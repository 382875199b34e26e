/* What a bad scenario is told: one case a line, message for message. */
#include "tests/harness/scenario/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define TARGETS                                                                                    \
    "write nodes, agents, workers, n2, n2/0, rank 0, node of rank 0, random of workers, random 2 " \
    "of nodes, 50%, majority, rack 0, store, store-0, store-leader, majority of store or "         \
    "coordinator\n"

/* In the messages the file's name is left out: "line:column: message". */
static const struct bad {
    const char *what, *text, *messages;
} cases[] = {
    {"an unknown key", "job: {run: [a]}\ntimelin: []\n",
     "2:1: scenario has no key \"timelin\"; did you mean \"timeline\"?\n"},
    {"an unknown key that resembles none", "job: {run: [a]}\nflavour: vanilla\n",
     "2:1: scenario has no key \"flavour\"; `rankquake explain scenario` lists those it has\n"},
    {"a key one level too deep", "job: {run: [a], nodes: 3}\n",
     "1:17: job has no key \"nodes\"; it belongs under cluster\n"},
    {"a key one level too high", "job: {run: [a]}\nmax_restarts: 2\n",
     "2:1: scenario has no key \"max_restarts\"; it belongs under job\n"},
    {"a build without inputs", "job: {run: [a], build: {run: [make], outputs: [a]}}\n",
     "1:24: build needs \"inputs\", for example inputs: [src, Makefile, /usr/bin/cc]\n"},
    {"a build that makes what lies elsewhere",
     "job: {run: [a], build: {run: [make], inputs: [b], outputs: [c/../../a]}}\n",
     "1:61: outputs: c/../../a does not lie below the directory where rankquake is started; what "
     "is "
     "built elsewhere is not kept\n"},
    {"a build in a run that is not there yet",
     "job: {run: [a], build: {run: [make, '{out}'], inputs: [''], outputs: []}}\n",
     "1:37: run: nothing is filled in here, for it is built before there is a run: \"{out}\"\n"
     "1:56: inputs must be a list of files, patterns or folders; this one is empty\n"
     "1:70: outputs is empty; it must be a list of files\n"},
    {"a power that names no host",
     "job: {run: [a]}\ncluster: {provider: ssh, hosts: [a, b], power: {off: [x], on: [y, "
     "'{node}']}}\n",
     "2:54: off: this command names no host: put {host} or {node} where the name of the host "
     "stands whose power it is\n"},
    {"a power that is never given back",
     "job: {run: [a]}\ncluster: {provider: ssh, hosts: [a, b], power: {off: [x, '{host}']}}\n",
     "2:48: power needs \"on\", for example on: [ipmitool, -H, \"{host}-bmc\", power, \"on\"]\n"},
    {"a power of an empty command and a word that is none",
     "job: {run: [a]}\ncluster: {provider: ssh, hosts: [a, b], power: {off: [], on: ['{hots}', "
     "'{node}']}}\n",
     "2:54: off: its command is empty; it must be a list: the program and its arguments\n"
     "2:63: on: there is no placeholder {hots} here; {host} and {node} exist\n"},
    {"a power of nodes on this machine",
     "job: {run: [a]}\ncluster: {power: {off: [x, '{host}'], on: [x, '{host}']}}\n",
     "2:43: power is for hosts, and without a provider the nodes are on this machine: write "
     "provider: ssh, slurm or exec\n"},
    {"a key given twice", "job: {run: [a]}\nseed: 1\nseed: 2\n", "3:1: \"seed\" is given twice\n"},
    {"a probe that asks twice", "job: {run: [a]}\nprobe: {x: {cmd: [a], http: http://n0}}\n",
     "2:9: probe.x: give one of cmd, http and prometheus\n"},
    {"a probe that asks nothing", "job: {run: [a]}\nprobe: {x: {every: 1s}}\n",
     "2:9: probe.x: give one of cmd, http and prometheus\n"},
    {"a page without its metric", "job: {run: [a]}\nprobe: {x: {prometheus: http://n0}}\n",
     "2:9: probe.x: a page of metrics has many numbers; name one by metric\n"},
    {"a metric without its page", "job: {run: [a]}\nprobe: {x: {http: http://n0, metric: up}}\n",
     "2:9: probe.x: metric stands for a number of a page that prometheus names\n"},
    {"a URL of something else", "job: {run: [a]}\nprobe: {x: {http: ftp://n0}}\n",
     "2:19: http must be a URL, such as http://n0:8080/health, not \"ftp://n0\"\n"},
    {"a URL of nobody", "job: {run: [a]}\nprobe: {x: {http: 'http:///health'}}\n",
     "2:19: http must be a URL, such as http://n0:8080/health, not \"http:///health\"\n"},
    {"a metric that is none",
     "job: {run: [a]}\nprobe: {x: {prometheus: http://n0, metric: 'up{job=x}'}}\n",
     "2:44: metric must be a metric, such as up or requests_total{code=\"200\"}, not "
     "\"up{job=x}\"\n"},
    {"a line without slashes", "job: {run: [a]}\nexpect: {log: {never: Traceback}}\n",
     "2:23: never must be a regular expression between slashes, such as '/loss is nan/', not "
     "\"Traceback\"\n"},
    {"a line that is wrong", "job: {run: [a]}\nexpect: {log: [{seen: '/[0-9/'}]}\n",
     "2:23: seen: /[0-9/ cannot be used: at \"[0-9\": there is no ] to this [\n"},
    {"a line both ways", "job: {run: [a]}\nexpect: {log: [{seen: /a/, never: /b/}]}\n",
     "2:16: log: give one of never, once and seen, such as {never: /Traceback/}\n"},
    {"no line at all", "job: {run: [a]}\nexpect: {log: [{within: 5s}]}\n",
     "2:16: log: give one of never, once and seen, such as {never: /Traceback/}\n"},
    {"a line of a random worker", "job: {run: [a]}\nexpect: {log: {seen: /a/, on: 50%}}\n",
     "2:31: on must be nodes, workers, agents, store, n2, n2/0 or rank 0, not \"50%\"\n"},
    {"a line of nobody", "job: {run: [a]}\nexpect: {log: {seen: /a/, on: rank 2}}\n",
     "2:31: on: there is no rank 2 in this scenario\n"},
    {"a line after nothing", "job: {run: [a]}\nexpect: {log: {seen: /a/, after: dark}}\n",
     "2:34: after: no entry of the timeline has the id \"dark\"\n"},
    {"lines that are a text", "job: {run: [a]}\nexpect: {log: /a/}\n",
     "2:15: log must be a map of a line, or a list of them, 20 at most\n"},
    {"a missing job", "scenario: x\n",
     "1:1: scenario needs \"job\", for example job: {run: [python3, train.py]}\n"},
    {"a missing run", "job: {nnodes: 2}\n",
     "1:6: job needs \"run\", for example run: [python3, train.py, --lr=0.1]\n"},
    {"an empty run", "job: {run: []}\n",
     "1:12: run is empty; it must be a list: the program and its arguments\n"},
    {"a run that is one text", "job: {run: python3 train.py}\n",
     "1:12: run must be a list: the program and its arguments, not a single value\n"},
    {"a list inside run", "job: {run: [a, [b]]}\n",
     "1:16: run must be a list: the program and its arguments; this item is a list\n"},
    {"a text for a number", "job: {run: [a], max_restarts: many}\n",
     "1:31: max_restarts must be a whole number, not \"many\"\n"},
    {"a quoted number", "job: {run: [a], max_restarts: \"3\"}\n",
     "1:31: max_restarts must be a whole number, not the text \"3\"\n"},
    {"a negative number", "job: {run: [a], max_restarts: -1}\n",
     "1:31: max_restarts must be from 0 to 1000000, not -1\n"},
    {"no workers", "job: {run: [a], workers_per_node: 0}\n",
     "1:35: workers_per_node must be from 1 to 256, not 0\n"},
    {"a list where a sweep would be", "job: {run: [a], workers_per_node: [1, 2]}\n",
     "1:35: workers_per_node must be a whole number, not a list; values to run with one after the "
     "other stand in sweep\n"},
    {"a map for a number", "job: {run: [a]}\ncluster: {nodes: {a: 1}}\n",
     "2:18: nodes must be a whole number, not a map\n"},
    {"a value that is not there", "job: {run: [a]}\nseed:\n",
     "2:1: seed has no value; it must be a whole number\n"},
    {"a section that is a text", "job: {run: [a]}\ncluster: big\n",
     "2:10: cluster must be a map, such as {nodes: ...}, not a single value\n"},
    {"racks of nobody", "job: {run: [a]}\ncluster: {racks: []}\n",
     "2:18: racks must be a list of lists of nodes, such as [[n0, n1], [n2, n3]], not empty\n"},
    {"racks that are one list", "job: {run: [a]}\ncluster: {racks: [n0, n1]}\n",
     "2:19: racks: rack 0 must be a list of its nodes, such as [n0, n1]\n"
     "2:23: racks: rack 1 must be a list of its nodes, such as [n0, n1]\n"},
    {"a node of no cluster in a rack", "job: {run: [a]}\ncluster: {racks: [[n0], [n2]]}\n",
     "2:26: racks: there is no node \"n2\" in this cluster; it has n0 to n1\n"},
    {"a node in two racks", "job: {run: [a]}\ncluster: {racks: [[n0], [n1, n0]]}\n",
     "2:30: racks: n0 is in rack 0 already\n"},
    {"no nodes", "job: {run: [a]}\ncluster: {nodes: 0}\n",
     "2:18: nodes must be from 1 to 240, not 0\n"},
    {"more started than there are", "job: {run: [a]}\ncluster: {nodes: 2, start: 3}\n",
     "2:28: start: 3 nodes are to be started, more than there are\n"},
    {"nnodes that are words", "job: {run: [a], nnodes: two}\n",
     "1:25: nnodes must be a number of nodes or \"MIN:MAX\", not \"two\"\n"},
    {"nnodes with three parts", "job: {run: [a], nnodes: \"1:2:3\"}\n",
     "1:25: nnodes must be a number of nodes or \"MIN:MAX\", not \"1:2:3\"\n"},
    {"nnodes the wrong way round", "job: {run: [a], nnodes: \"3:2\"}\n",
     "1:25: nnodes \"3:2\": the most (2) is less than the least (3)\n"},
    {"nnodes from zero", "job: {run: [a], nnodes: \"0:2\"}\n",
     "1:25: nnodes must be a number of nodes or \"MIN:MAX\", not \"0:2\"\n"},
    {"more nodes needed than there are", "job: {run: [a], nnodes: \"3:4\"}\ncluster: {nodes: 2}\n",
     "1:25: nnodes needs at least 3 nodes, the cluster has 2\n"},
    {"a store on a node that is off",
     "job: {run: [a]}\ncluster: {nodes: 3, start: 2, store: {on: n2}}\n",
     "2:38: store: {on: n2}: the store's node must be on from the beginning, n0 to n1\n"},
    {"a backend that the store does not speak",
     "job: {run: [a], rdzv_backend: etcd-v2}\ncluster: {store: etcd}\n",
     "1:31: rdzv_backend: rankrun with etcd as the store speaks etcd-v3 etcd, not etcd-v2\n"},
    {"a backend that nothing speaks",
     "job: {run: [a], rdzv_backend: etcd-v2, nnodes: 1}\ncluster: {nodes: 1, store: none}\n",
     "1:31: rdzv_backend: rankrun with its own as the store speaks embedded etcd-v3 etcd, not "
     "etcd-v2\n"},
    {"options of a store that is not rankrun's",
     "job: {run: [a]}\ncluster: {store: etcd, store_args: [--memory=16]}\n",
     "2:36: store_args: only rankrun's store in a node of its own is told options; write store: "
     "embedded, and more nodes than one\n"},
    {"options of a store that an agent serves",
     "job: {run: [a]}\ncluster: {store: {on: n0}, store_args: [--memory=16]}\n",
     "2:40: store_args: only rankrun's store in a node of its own is told options; write store: "
     "embedded, and more nodes than one\n"},
    {"where a store listens", "job: {run: [a]}\ncluster: {store_args: [--port=1]}\n",
     "2:24: store_args: --port=1: where the store listens is the harness's matter; leave it "
     "out\n"},
    {"a store that is none", "job: {run: [a]}\ncluster: {store: redis}\n",
     "2:18: store must be embedded, etcd, etcd-3, none or {on: NODE}, not \"redis\"\n"},
    {"no store for two nodes", "job: {run: [a]}\ncluster: {store: none}\n",
     "2:10: store: none: rankrun's agents need a store to meet at; write embedded\n"},
    {"a launcher that takes other options", "job: {run: [a]}\nlauncher: mpirun -n 2\n",
     "2:11: launcher: mpirun does not take torchrun's options; write a template that names "
     "{worker}, and as they are needed {nodes} {node} {endpoint}\n"},
    {"a launcher with a typing error", "job: {run: [a]}\nlauncher: torchrn\n",
     "2:11: launcher must be rankrun, torchrun, a command that takes torchrun's options or a "
     "template, not \"torchrn\"; did you mean \"torchrun\"?\n"},
    {"a template without a worker", "job: {run: [a]}\nlauncher: 'ssh n{node} run'\n",
     "2:11: launcher: a template must say where the worker's command goes: {worker}\n"},
    {"a template with an unknown name", "job: {run: [a]}\nlauncher: 'x {rank} {worker}'\n",
     "2:11: launcher: there is no {rank}; a template names {nodes} {node} {address} {endpoint} "
     "{worker}\n"},
    {"an open quotation in a launcher", "job: {run: [a]}\nlauncher: sh -c \"a\n",
     "2:11: launcher: a quotation does not end\n"},
    {"a launcher's option that has a key", "job: {run: [a], launcher_args: [--nproc_per_node=2]}\n",
     "1:33: launcher_args: --nproc_per_node=2 is said by job.workers_per_node\n"},
    {"a bare number as a duration", "job: {run: [a]}\nlimits: {total: 30}\n",
     "2:17: total: \"30\" is not a duration; write 250ms, 2s, 5m or 1h\n"},
    {"a duration of nothing", "job: {run: [a]}\nlimits: {total: 0s}\n",
     "2:17: total must be longer than 0\n"},
    {"an unknown placeholder", "job: {run: [a, \"{share}/x\"]}\n",
     "1:16: there is no placeholder {share}; did you mean {shared}? {shared} {disk} {tmp} {out} "
     "{seed} {node} exist, and a brace that is meant stands as { share }\n"},
    {"a name that is a path", "job: {run: [a]}\nscenario: ../etc\n",
     "2:11: scenario: \"../etc\" must be letters, digits, - _ or ., 80 at most; sentences go under "
     "about\n"},
    {"a timeline that is a map", "job: {run: [a]}\ntimeline: {fault: x}\n",
     "2:11: timeline must be a list of faults, not a map\n"},
    {"a line without a trigger",
     "job: {run: [a]}\ntimeline:\n  - {fault: worker-kill, on: workers}\n",
     "3:5: timeline needs \"when\", for example when: {step: 137}\n"},
    {"a line without a fault", "job: {run: [a]}\ntimeline:\n  - {when: {step: 1}, on: workers}\n",
     "3:5: an entry of the timeline needs a fault or a heal\n"},
    {"a trigger of nothing", "job: {run: [a]}\ntimeline:\n  - {when: {}, fault: x, on: n0}\n",
     "3:12: when names nothing to wait for; give step, round, phase, time, event, log, file, "
     "syscall, store or after\n"},
    {"a trigger that only holds",
     "job: {run: [a]}\ntimeline:\n  - {when: {time: 1s, hold: true}, fault: x, on: n0}\n",
     "3:29: hold needs a step, an event, a phase, a file, a system call or an "
     "operation of the store: nothing else has a sender to stop\n"},
    {"a count without an event",
     "job: {run: [a]}\ntimeline:\n  - {when: {step: 1, nth: 2}, fault: x, on: n0}\n",
     "3:27: nth needs an event to count\n"},
    {"a step and an event",
     "job: {run: [a]}\ntimeline:\n  - {when: {step: 1, event: ready}, fault: x, on: n0}\n",
     "3:12: when has a step and an event; only one of them can be held, so give one\n"},
    {"a step that is none", "job: {run: [a]}\ntimeline:\n  - {when: {step: 0}, fault: x, on: n0}\n",
     "3:19: step must be from 1 to 1000000000, not 0\n"},
    {"an unknown event",
     "job: {run: [a]}\ntimeline:\n  - {when: {event: checkpoint-comit}, fault: x, on: n0}\n",
     "3:20: event must be the kind of a job's event, not \"checkpoint-comit\"; did you mean "
     "\"checkpoint-commit\"?\n"},
    {"a step as an event",
     "job: {run: [a]}\ntimeline:\n  - {when: {event: step}, fault: x, on: n0}\n",
     "3:20: event: step has a word of its own; write step: N\n"},
    {"a step and a phase",
     "job: {run: [a]}\ntimeline:\n  - {when: {step: 1, phase: join}, fault: x, on: n0}\n",
     "3:12: when has a step and a phase; only one of them can be held, so give one\n"},
    {"an unknown phase", "job: {run: [a]}\ntimeline:\n  - {when: {phase: akc}, fault: x, on: n0}\n",
     "3:20: phase must be a place in a round, not \"akc\"; did you mean \"ack\"?\n"},
    {"a line and a step at once",
     "job: {run: [a]}\ntimeline:\n  - {when: {step: 1, log: /x/}, fault: x, on: n0}\n",
     "3:12: when has a line of the log and a step; give one, and the other a line of its own with "
     "after\n"},
    {"a line without slashes",
     "job: {run: [a]}\ntimeline:\n  - {when: {log: saved}, fault: x, on: n0}\n",
     "3:18: log must be a regular expression between slashes, such as '/loss is nan/', not "
     "\"saved\"\n"},
    {"a line that is held",
     "job: {run: [a]}\ntimeline:\n  - {when: {log: /x/, hold: true}, fault: x, on: n0}\n",
     "3:29: hold needs a step, an event, a phase, a file, a system call or an "
     "operation of the store: nothing else has a sender to stop\n"},
    {"a wrong expression", "job: {run: [a]}\nobserve: {step: 'step ([0-9+)'}\n",
     "2:17: step: /step ([0-9+)/ cannot be used: at \"[0-9+)\": there is no ] to this [\n"},
    {"an expression that the library refuses", "job: {run: [a]}\nobserve: {step: '(*[0-9])'}\n",
     "2:17: step: /(*[0-9])/ is no regular expression: Invalid preceding regular expression\n"},
    {"an expression that takes no number", "job: {run: [a]}\nobserve: {step: 'step [0-9]+'}\n",
     "2:17: step: /step [0-9]+/ takes no number out of the line; put it in a group, as in step: "
     "'step ([0-9]+)'\n"},
    {"an expression with too many groups", "job: {run: [a]}\nobserve: {done: '(a)(b)(c)(d)'}\n",
     "2:17: done: /(a)(b)(c)(d)/ has 4 groups; only one is the value: write (?:...) for the "
     "others\n"},
    {"a preset that is not there", "job: {run: [a]}\nobserve: {preset: keras}\n",
     "2:19: preset must be deepspeed, hf-trainer, lightning, megatron, nanogpt, torchtitan or "
     "tqdm, not \"keras\"\n"},
    {"a kind that is not there", "job: {run: [a]}\nobserve: {stepp: 'x'}\n",
     "2:11: observe has no key \"stepp\"; did you mean \"step\"?\n"},
    {"a printed step that is held",
     "job: {run: [a]}\nobserve: {preset: tqdm}\ntimeline:\n"
     "  - {when: {step: 1, hold: true}, fault: x, on: n0}\n",
     "4:28: hold: step is read from the job's output (observe), where nothing can be held; leave "
     "hold out, or let the job send events\n"},
    {"after an unknown line",
     "job: {run: [a]}\ntimeline:\n  - {id: dark, when: {after: drak}, fault: x, on: n0}\n",
     "3:30: after: no entry of the timeline has the id \"drak\"; did you mean \"dark\"?\n"},
    {"after itself",
     "job: {run: [a]}\ntimeline:\n  - {id: dark, when: {after: dark}, fault: x, on: n0}\n",
     "3:30: after: \"dark\" is this very entry; a fault can only follow one that stands above "
     "it\n"},
    {"after a later line",
     "job: {run: [a]}\ntimeline:\n  - {id: a, when: {after: b}, fault: x, on: n0}\n  - {id: b, "
     "when: {step: 1}, fault: x, on: n0}\n",
     "3:27: after: \"b\" comes later; a fault can only follow one that stands above it\n"},
    {"two lines of one name",
     "job: {run: [a]}\ntimeline:\n  - {id: a, when: {step: 1}, fault: x, on: n0}\n  - {id: a, "
     "when: {step: 1}, fault: x, on: n0}\n",
     "4:10: id: \"a\" is taken by an earlier entry\n"},
    {"a fault and a heal",
     "job: {run: [a]}\ntimeline:\n  - {id: a, when: {step: 1}, fault: x, on: n0}\n  - {when: "
     "{step: 1}, fault: x, heal: a, on: n0}\n",
     "4:5: fault and heal exclude each other; make two entries of it\n"},
    {"a heal of nothing", "job: {run: [a]}\ntimeline:\n  - {when: {step: 1}, heal: cut}\n",
     "3:29: heal: no entry above has the id \"cut\"\n"},
    {"a target that is none",
     "job: {run: [a]}\ntimeline:\n  - {when: {step: 1}, fault: x, on: everything}\n",
     "3:37: on: \"everything\" is no target; " TARGETS},
    {"a target with a typing error",
     "job: {run: [a]}\ntimeline:\n  - {when: {step: 1}, fault: x, on: randm of workers}\n",
     "3:37: on: \"randm of workers\" is no target; did you mean \"random\"? Or " TARGETS},
    {"a majority of what has no name",
     "job: {run: [a]}\ntimeline:\n  - {when: {step: 1}, fault: x, on: majority of all}\n",
     "3:37: on: \"majority of all\" is no target; " TARGETS},
    {"a target as a list",
     "job: {run: [a]}\ntimeline:\n  - {when: {step: 1}, fault: x, on: [n0, n1]}\n",
     "3:37: on must be a target, not a list; values to run with one after the other stand in "
     "sweep\n"},
    {"more than all of them",
     "job: {run: [a]}\ntimeline:\n  - {when: {step: 1}, fault: x, on: 120%}\n",
     "3:37: on: \"120%\" is no target; " TARGETS},
    {"two ends",
     "job: {run: [a]}\ntimeline:\n  - {when: {step: 1}, fault: x, on: n0, for: 1s, until: {round: "
     "2}}\n",
     "3:57: for and until exclude each other: give one end\n"},
    {"an end of nothing",
     "job: {run: [a]}\ntimeline:\n  - {when: {step: 1}, fault: x, on: n0, until: {plus: 1s}}\n",
     "3:48: until names nothing to wait for; give step, round, phase, time, event, log, file, "
     "syscall, store or after\n"},
    {"an end with a word of the beginning",
     "job: {run: [a]}\ntimeline:\n  - {when: {step: 1}, fault: x, on: n0, until: {round: 2, "
     "within: "
     "1s}}\n",
     "3:67: within has no use in until: a fault whose end does not come lasts to the end of the "
     "run\n"},
    {"an end with a typing error",
     "job: {run: [a]}\ntimeline:\n  - {when: {step: 1}, fault: x, on: n0, until: {rond: 2}}\n",
     "3:49: until has no key \"rond\"; did you mean \"round\"?\n"},
    {"an end after itself",
     "job: {run: [a]}\ntimeline:\n  - {id: c, when: {step: 1}, fault: x, on: n0, until: {after: "
     "c}}\n",
     "3:63: after: \"c\" is this entry itself; use for to say how long the fault lasts\n"},
    {"an end at a heal",
     "job: {run: [a]}\ntimeline:\n  - {id: c, when: {step: 1}, fault: x, on: n0}\n"
     "  - {when: {after: c}, heal: c, until: {round: 2}}\n",
     "4:5: heal ends a fault; on, with, profile, for, until and sticky stand at that fault\n"},
    {"an end that comes after the run",
     "job: {run: [a]}\nlimits: {total: 10s}\ntimeline:\n"
     "  - {when: {time: 1s}, fault: x, on: n0, until: {time: 4s, plus: 6s}}\n",
     "4:49: until: x-1 can never end so: the run ends after limits.total, 10 s; without until it "
     "lasts to the end of the run\n"},
    {"trouble that sticks to something else",
     "job: {run: [a]}\ntimeline:\n  - {when: {step: 1}, fault: x, on: n0, sticky: rank}\n",
     "3:49: sticky must be node, not \"rank\"\n"},
    {"trouble that sticks and is counted",
     "job: {run: [a]}\ntimeline:\n  - {when: {step: 1}, fault: x, on: n0, sticky: node, times: "
     "2}\n",
     "3:5: times and sticky exclude each other: sticky is as often as the node comes back\n"},
    {"times that are a word",
     "job: {run: [a]}\ntimeline:\n  - {when: {step: 1}, fault: x, on: n0, times: always}\n",
     "3:48: times must be once, each-round or a whole number, not \"always\"\n"},
    {"times that are none",
     "job: {run: [a]}\ntimeline:\n  - {when: {step: 1}, fault: x, on: n0, times: 0}\n",
     "3:48: times must be from 1 to 1000, not 0\n"},
    {"with that is a list",
     "job: {run: [a]}\ntimeline:\n  - {when: {step: 1}, fault: x, on: n0, with: [disk]}\n",
     "3:47: with must be a map of parameters, not a list\n"},
    {"an unknown outcome", "job: {run: [a]}\nexpect: {outcome: sucess}\n",
     "2:19: outcome must be succeeded, failed, stopped, unknown or refused, not \"sucess\"\n"},
    {"a fault of a job that does not begin",
     "job: {run: [a]}\nexpect: {outcome: refused}\ntimeline:\n  - {when: {step: 1}, fault: "
     "worker-kill, on: rank 0, id: k}\n",
     "4:5: k can never fire: outcome: refused is of a job that does not begin; leave the timeline "
     "out\n"},
    {"a world that can never be",
     "job: {run: [a], nnodes: \"2:3\", workers_per_node: 2}\ncluster: {nodes: 3}\nexpect: "
     "{world_sizes: [6, 5]}\n",
     "3:23: world_sizes: 5 can never be: 2 to 3 nodes with 2 workers each make 4 to 6\n"},
    {"a world larger than the cluster", "job: {run: [a]}\nexpect: {world_sizes: [4]}\n",
     "2:23: world_sizes: 4 can never be: 1 to 2 nodes with 1 worker each make 1 to 2\n"},
    {"a world with nodes that are never on",
     "job: {run: [a]}\ncluster: {nodes: 3, start: 2}\nexpect: {world_sizes: [3]}\n",
     "3:23: world_sizes: 3 can never be: 1 to 2 nodes with 1 worker each make 1 to 2\n"},
    {"a moment after the end",
     "job: {run: [a]}\nlimits: {total: 10s}\n"
     "timeline: [{when: {time: 20s}, fault: x, on: n0}]\n",
     "3:19: x-1 can never fire: the run ends after limits.total, 10 s\n"},
    {"a checkpoint of nowhere", "job: {run: [a], checkpoint: {complete: ls}}\n",
     "1:6: checkpoint: complete needs a dir to look at\n"},
    {"world sizes that are one number", "job: {run: [a]}\nexpect: {world_sizes: 4}\n",
     "2:23: world_sizes must be a list of world sizes, \"*\" for any run of rounds, or {ends: "
     "[...]}\n"},
    {"more restarts than there may be", "job: {run: [a], max_restarts: 1}\nexpect: {restarts: 2}\n",
     "2:20: restarts: 2 can never be: job.max_restarts is 1\n"},
    {"a range the wrong way round", "job: {run: [a]}\nexpect: {restarts: 2..1}\n",
     "2:20: restarts: 2..1 is empty; the smaller number comes first\n"},
    {"a budget for an unknown line", "job: {run: [a]}\nexpect: {detect_within: {dark: 2s}}\n",
     "2:26: detect_within: no entry of the timeline has the id \"dark\"\n"},
    {"a phase that is none", "job: {run: [a]}\nexpect: {phases_within: {rendevous: 1s}}\n",
     "2:26: phases_within: there is no phase \"rendevous\"; did you mean \"rendezvous\"?\n"},
    {"losses of no step", "job: {run: [a]}\nexpect: {losses: 2.3}\n",
     "2:18: losses must be a map of steps and losses\n"},
    {"a loss of what is no step", "job: {run: [a]}\nexpect: {losses: {last: 2.3}}\n",
     "2:19: losses: \"last\" is no step; expected a whole number from 1 on\n"},
    {"a loss that is no number", "job: {run: [a]}\nexpect: {losses: {40: low}}\n",
     "2:23: losses: the loss of step 40 must be a number, a bound such as <= 0.9, or a range such "
     "as 0.84..0.86, not \"low\"\n"},
    {"phases without a name", "job: {run: [a]}\nexpect: {phases_within: 1s}\n",
     "2:25: phases_within must be a map of phases and durations\n"},
    {"lost work in words", "job: {run: [a]}\nexpect: {lost_work: little}\n",
     "2:21: lost_work must be a number of steps, or a duration, not \"little\"\n"},
    {"a share that is no percentage", "job: {run: [a]}\nexpect: {goodput: 0.8}\n",
     "2:19: goodput must be a percentage such as 80%, not \"0.8\"\n"},
    {"more than all of the time", "job: {run: [a]}\nexpect: {goodput: 101%}\n",
     "2:19: goodput must be a percentage such as 80%, not \"101%\"\n"},
    {"an unknown word for the model", "job: {run: [a]}\nexpect: {model: same}\n",
     "2:17: model must be same-as-undisturbed, not \"same\"\n"},
    {"an anchor", "a: &x [1]\nb: *x\n",
     "1:7: anchors and aliases are not used in scenarios; write the value out\n"},
    {"an alias to nothing", "a: *x\n",
     "1:5: anchors and aliases are not used in scenarios; write the value out\n"},
    {"a merge key", "job: {run: [a]}\ncluster: {<<: {nodes: 2}}\n",
     "2:11: merge keys (<<) are not used in scenarios; write the keys out\n"},
    {"a tag", "job: {run: [a]}\nseed: !!int 3\n", "2:13: tags (!...) are not used in scenarios\n"},
    {"a second document", "job: {run: [a]}\n---\njob: {run: [b]}\n",
     "2:1: one file is one scenario; move the second document to a file of its own\n"},
    {"a file that is a list", "- a\n",
     "1:1: a scenario is a map of keys, such as job: {...}, not a list\n"},
    {"a file that is a word", "hello\n",
     "1:1: a scenario is a map of keys, such as job: {...}, not a single value\n"},
    {"a key that is a list", "job: {run: [a]}\n[a, b]: c\n",
     "2:1: a key must be a word, not a list or a map\n"},
    {"nothing", "", " is empty; the smallest scenario is job: {run: [python3, train.py]}\n"},
    {"a comment alone", "# later\n",
     " is empty; the smallest scenario is job: {run: [python3, train.py]}\n"},
    {"several errors at once",
     "job: {run: [a], nnodes: x, max_restart: 1}\nlimits: {total: 5}\ntimeline: [{when: {stp: 3}, "
     "fault: x}]\n",
     "1:25: nnodes must be a number of nodes or \"MIN:MAX\", not \"x\"\n1:28: job has no key "
     "\"max_restart\"; did you mean \"max_restarts\"?\n2:17: total: \"5\" is not a duration; write "
     "250ms, 2s, 5m or 1h\n3:20: when has no key \"stp\"; did you mean \"step\"?\n"},
};

static void test_every_bad_file_is_told_what_is_wrong_and_where(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct scratch x;
        struct buf got = {0};
        scratch_load(&x, cases[i].text);
        scratch_messages(&x, &got);
        if (!str_eq(buf_str(&got), cases[i].messages))
            fail_msg("%s:\n%snot\n%s", cases[i].what, buf_str(&got), cases[i].messages);
        assert_null(x.s);
        assert_true(x.d.errors > 0);
        buf_fini(&got);
        scratch_drop(&x);
    }
}

static void test_the_line_and_a_caret_stand_below_the_message(void **state) {
    (void)state;
    struct scratch x;
    struct buf want = {0};
    scratch_load(&x, "job:\n  run: [a]\n  env: {\"\xc3\xa4\": 1, b: [1]}\n");
    buf_printf(&want,
               "%s:3:20: b must be a single value, not a list; values to run with one after the "
               "other stand in sweep\n"
               "      env: {\"\xc3\xa4\": 1, b: [1]}\n"
               "                       ^\n",
               x.path);
    assert_string_equal(buf_str(&x.d.out), buf_str(&want));
    buf_fini(&want);
    scratch_drop(&x);
}

static void test_broken_yaml_is_named_as_such(void **state) {
    (void)state;
    static const char *const texts[] = {"job: {run: [a\n",      "job: {run: [\"a]}\n",
                                        "job:\n\trun: [a]\n",   "a: b: c\n",
                                        "%YAML 9\n---\na: b\n", "a: |\n  x\n y: z\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct scratch x;
        scratch_load(&x, texts[i]);
        assert_null(x.s);
        assert_non_null(strstr(buf_str(&x.d.out), ": this is not YAML: "));
        scratch_drop(&x);
    }
}

static void test_a_flood_of_errors_is_cut(void **state) {
    (void)state;
    struct buf text = {0}, got = {0};
    buf_puts(&text, "job: {run: [a]}\n");
    for (int i = 0; i < 200; i++)
        buf_printf(&text, "k%d: 1\n", i);
    struct scratch x;
    scratch_load(&x, buf_str(&text));
    scratch_messages(&x, &got);
    assert_int_equal(x.d.errors, 200);
    assert_true(str_ends(buf_str(&got), " more than 50 errors; the rest is left out\n"));
    buf_fini(&text);
    buf_fini(&got);
    scratch_drop(&x);
}

static void test_a_bad_set_is_named_instead_of_a_line(void **state) {
    (void)state;
    static const char *const set[] = {"job.max_restarts=x", "nothing", "seed=[1", "job.run.7=b",
                                      "seed.deep=1",        "flag=1",  NULL};
    static const char text[] = "job: {run: [a]}\nseed: 3\n";
    struct scratch x;
    struct buf got = {0};
    scratch_load_bytes(&x, text, strlen(text), set);
    assert_null(x.s);
    scratch_messages(&x, &got);
    assert_non_null(strstr(buf_str(&got), "--set job.max_restarts: max_restarts must be a whole "
                                          "number, not \"x\"\n"));
    assert_non_null(strstr(buf_str(&got), "--set nothing: must be key=value"));
    assert_non_null(strstr(buf_str(&got), "--set seed: this is not YAML: "));
    assert_non_null(strstr(buf_str(&got), "--set job.run.7: the list has 1 item, counted from 0, "
                                          "and none \"7\"\n"));
    assert_non_null(strstr(buf_str(&got), "--set seed.deep: there is nothing below \"seed\""));
    assert_non_null(strstr(buf_str(&got), "--set flag: scenario has no key \"flag\""));
    buf_fini(&got);
    scratch_drop(&x);
}

static void expect_refusal(const char *path, const char *sentence) {
    struct diagnostics d = {0};
    assert_null(scenario_load(path, NULL, &d));
    assert_non_null(strstr(buf_str(&d.out), sentence));
    assert_int_equal(d.errors, 1);
    diagnostics_fini(&d);
}

static void test_what_is_no_file_is_refused(void **state) {
    (void)state;
    expect_refusal("no/such.yaml", "no/such.yaml: cannot be opened: No such file or directory\n");
    expect_refusal("/", "/: is a directory; name a file in it\n");
    expect_refusal("/proc/self/mem", "/proc/self/mem: cannot be read: ");
    expect_refusal("/dev/zero", "/dev/zero: is a device, and only plain files are read\n");
    expect_refusal("/dev/null", "/dev/null: is a device, and only plain files are read\n");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_bad_file_is_told_what_is_wrong_and_where),
        cmocka_unit_test(test_the_line_and_a_caret_stand_below_the_message),
        cmocka_unit_test(test_broken_yaml_is_named_as_such),
        cmocka_unit_test(test_a_flood_of_errors_is_cut),
        cmocka_unit_test(test_a_bad_set_is_named_instead_of_a_line),
        cmocka_unit_test(test_what_is_no_file_is_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
