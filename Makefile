# RankQuake: break your training job on purpose, before the cluster does.
#
#   make            build the programs into build/bin          (release, -O2)
#   make demo       install what is missing, build, run the tour
#   make test       install what is missing, build, run every test (12 minutes at most)
#   make soak       the long tests: scenarios repeated, the harness killed, PyTorch
#   make fuzz       schedules for the simulator, what others send, histories, scenarios and records, fuzzed by AFL++ (FUZZ_S=600 seconds each)
#   make mutants    bugs planted into launcher, job and harness: which a scenario sees, and the score
#   make mutate     forty bugs drawn by a seed, and which oracle sees each: ci/mutate
#   make bench      the promises in numbers
#   make site       the documents as a static site, build/site, by mkdocs; every link is followed
#   make compare    rankrun beside the torchruns of three Debian releases (LAUNCHERS=, SCENARIOS=)
#   make install    PREFIX=/usr/local; make uninstall takes it away again
#   make package    build/package: .deb, tarball, wheel and image of this commit, docs/install.md (PACKAGES=deb,tarball,wheel,image)
#   make transcripts  write tests/harness/sim/transcripts/*.txt and what else is on record anew
#   make verdicts     write tests/harness/judge/checks/verdicts/*.txt anew
#   make tidy       layers, purity, tables, names, lengths;  make format: clang-format
#   make clean      remove build/
#
#   BUILD=release|debug|asan|tsan|cov|fast|portable   another kind of build, in build/$(BUILD); fast: for hours of seeds;
#                   portable: what packages hold, all libraries inside but the C library
#   V=1 shows the commands      DEPS=0 never installs anything      NVCC= builds nothing for GPUs      TLS= nothing for TLS
.DEFAULT_GOAL := all
BUILD ?= release
PREFIX ?= /usr/local
$(if $(filter $(BUILD),release debug asan tsan cov fast portable),,$(error BUILD=$(BUILD): release, debug, asan, tsan, cov, fast or portable))
# Where the training data's package is missing, what make starts asks for made-up images.
ifeq ($(wildcard /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte*),)
export RANKTRAIN_DATASET ?= generated
endif
OUT := build/$(BUILD)
BIN := $(if $(filter release,$(BUILD)),build/bin,$(OUT)/bin)
VERSION := $(shell cat VERSION)

CFLAGS.release := -O2 -fstack-protector-strong
CFLAGS.portable := -O2 -fstack-protector-strong -ffile-prefix-map=$(CURDIR)=.
CFLAGS.debug := -Og -DRANKRUN_FAILPOINTS
CFLAGS.fast := -O3 -flto=auto -fomit-frame-pointer
CFLAGS.asan := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
CFLAGS.tsan := -O1 -fsanitize=thread
CFLAGS.cov := -O0 --coverage -DRANKQUAKE_COVERAGE
LDFLAGS.fast := $(CFLAGS.fast)
LDFLAGS.asan := -fsanitize=address,undefined
LDFLAGS.tsan := -fsanitize=thread
LDFLAGS.cov := --coverage
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wswitch-enum -Wvla \
        -Wformat=2 -Wpointer-arith -Wundef -Wno-missing-field-initializers -Wno-unused-parameter
# In a node with a root file system of its own our programs find there what they were linked with
# (harness/cluster/bundle.h); elsewhere there is no such folder.
BUNDLE_RPATH := -Wl,--disable-new-dtags,-rpath,/run/rankquake/lib
ALL_CFLAGS := -std=c11 -g -fno-omit-frame-pointer -ffp-contract=off -I. -D_GNU_SOURCE \
        -DRANKQUAKE_VERSION='"$(VERSION)"' $(WARN) $(CFLAGS.$(BUILD)) $(CFLAGS)

# What a simulation proves something about: its commit, and a hash over the core and its simulator.
CORE_COMMIT := $(or $(shell git describe --always --abbrev=12 --dirty --exclude='*' 2>/dev/null),no commit)
CORE_HASH = $(firstword $(shell LC_ALL=C; cat $$(ls agent/core/*.[ch] base/*.[ch] harness/sim/*.[ch] harness/invariants/*.[ch]) | sha256sum | cut -c1-16))
CORE := commit $(CORE_COMMIT), core $(CORE_HASH)
$(OUT)/harness/verbs/sim.o: CPPFLAGS += -DRANKQUAKE_CORE='"$(CORE)"'
$(OUT)/harness/verbs/sim.o: $(OUT)/.core

# One archive per room; a program takes what it needs of those it is linked with, in this order.
objects = $(patsubst %.c,$(OUT)/%.o,$(filter-out %/main.c,$(foreach d,$(1),$(wildcard $(d)/*.c))))
SRC.job := $(wildcard scenarios/jobs/ranktrain/*.c)
LIBS := reports harness faults agent base
OBJ.base := $(call objects,base base/sys base/http)
OBJ.agent := $(call objects,agent agent/core agent/hosts agent/legacy agent/store agent/store/limits agent/tls agent/workers)
OBJ.faults := $(call objects,faults faults/clock faults/disk faults/mechanism faults/mechanism/disk faults/network faults/node faults/process faults/scheduler faults/store)
OBJ.harness := $(call objects,harness $(addprefix harness/,scenario scenario/expand plan launch carrier provider host cluster run run/evidence play ci doctor observe history judge judge/checks invariants sim explore shrink crash trial trend verbs verbs/crashpoints verbs/language verbs/run verbs/shrink verbs/sim verbs/watch verbs/trend) \
  $(addprefix harness/,certify preflight preflight/probes verbs/certify) \
  $(addprefix harness/judge/checks/,claims ending group recovery training trust))
OBJ.reports := $(call objects,reports reports/batch reports/certificate reports/comparison reports/curve reports/trend)
OBJ.job := $(call objects,$(addprefix scenarios/jobs/,ranktrain ranktrain/checkpoints ranktrain/data ranktrain/mode ranktrain/model ranktrain/net ranktrain/prepare)) \
  $(addprefix $(OUT)/scenarios/jobs/ranktrain/gpu/,backend.o nccl_api.o nccl_failure.o nccl_interface.o)
archive = $(patsubst %,$(OUT)/lib%.a,$(1))
# Within rankrun where its archives are there: loading libevent takes a tenth of the time in which workers start.
EVENT_ARCHIVE := $(wildcard $(shell $(CC) -print-file-name=libevent_core.a))
LDLIBS.rankrun := -pthread $(if $(EVENT_ARCHIVE),-l:libevent_extra.a -l:libevent_core.a,-levent_extra -levent_core) -ldl
comma := ,
# rankrun_tls.so, which rankrun loads when its store is given a certificate: libevent's bufferevent over
# OpenSSL, which is the system's. Where libevent is within rankrun, its functions that the object asks
# for are exported there. Without libssl-dev (make TLS= does without) there is none.
TLS ?= $(wildcard $(shell $(CC) -print-file-name=libssl.so))
TLS_MODULE := $(if $(TLS),$(BIN)/rankrun_tls.so)
TLS_EXPORTS := $(if $(and $(TLS),$(EVENT_ARCHIVE)),$(OUT)/tls/exports)
TLS_LDFLAGS := -shared -Wl,-z,relro -Wl,--exclude-libs,ALL
TLS_LDLIBS := $(if $(EVENT_ARCHIVE),-l:libevent_openssl.a,-levent_openssl -levent_core) -lssl -lcrypto
LDFLAGS.rankrun := $(addprefix -Wl$(comma)--dynamic-list=,$(TLS_EXPORTS))
LDLIBS.rankquake := -pthread -lfyaml -levent_core -levent_extra -lm -ldl
LDLIBS.rankprobe := -levent_core
LDLIBS.rankquake-node := -pthread $(if $(EVENT_ARCHIVE),-l:libevent_extra.a -l:libevent_core.a,-levent_extra -levent_core) -lm -ldl
LDFLAGS.rankquake-node := $(if $(EVENT_ARCHIVE),$(if $(filter asan tsan cov,$(BUILD)),,-static -Wl$(comma)--gc-sections$(comma)--no-warnings))
LDLIBS.ranktrain := -pthread $(if $(EVENT_ARCHIVE),-l:libevent_extra.a -l:libevent_core.a,-levent_extra -levent_core) -lz -lm -ldl

# Within all of them what a host need not have; the C library is the host's, 2.34 or newer.
ifeq ($(BUILD),portable)
  PORTABLE := $(OUT)/base/sys/older_libc.o
  LDLIBS.rankquake := -pthread -l:libfyaml.a -l:libevent_extra.a -l:libevent_core.a -lm -ldl
  LDLIBS.rankprobe := -l:libevent_core.a
  LDLIBS.rankquake-node := -pthread -l:libevent_extra.a -l:libevent_core.a -lm -ldl
  LDLIBS.ranktrain := -pthread -l:libevent_extra.a -l:libevent_core.a -l:libz.a -lm -ldl
  LDFLAGS.portable := -Wl,-z,relro,-z,now
endif

# ranktrain_cuda.so, which ranktrain loads: C by the C compiler against the toolkit's headers, kernels
# by nvcc, the CUDA runtime inside, one symbol outside. Without a toolkit (make NVCC= does without)
# there is none. The tests have one whose headers, kernels and runtime are those of tests/fakes/cudart.
NVCC ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc /usr/local/cuda-*/bin/nvcc))
CUDA := $(if $(NVCC),$(abspath $(dir $(realpath $(NVCC)))..))
CUDART := $(if $(CUDA),$(firstword $(wildcard $(addsuffix /libcudart_static.a,$(CUDA)/lib64 $(CUDA)/lib $(CUDA)/targets/*/lib /usr/lib/*-linux-gnu))))
# Whether nvcc finds a compiler that it gets on with is tried once; where it does not, all else is built.
NVCC_TRIED := build/.nvcc
ifneq ($(and $(CUDART),$(filter-out clean help deps tidy format uninstall,$(or $(MAKECMDGOALS),all))),)
  ifneq ($(shell cat $(NVCC_TRIED) 2>/dev/null),$(NVCC))
    $(shell mkdir -p build && echo '__global__ void k(void) {}' >$(NVCC_TRIED).cu && $(NVCC) -allow-unsupported-compiler \
      -c -o $(NVCC_TRIED).o $(NVCC_TRIED).cu >/dev/null 2>&1 && echo '$(NVCC)' >$(NVCC_TRIED))
  endif
  NVCC_WORKS := $(filter $(shell cat $(NVCC_TRIED) 2>/dev/null),$(NVCC))
  $(if $(NVCC_WORKS),,$(warning $(NVCC) cannot compile (is there a g++?): ranktrain_cuda.so is left out; make NVCC= says nothing))
endif
GPU := $(if $(NVCC_WORKS),$(BIN)/ranktrain_cuda.so)
GPU_SRC := $(filter-out %/backend.c,$(wildcard scenarios/jobs/ranktrain/gpu/*.c)) \
  $(addprefix scenarios/jobs/ranktrain/net/,door.c link.c tcp_links.c) $(addprefix base/,err.c printable.c utf8.c buf.c mem.c sha256.c)
GPU_KERNELS := scenarios/jobs/ranktrain/gpu/kernels
GPU_CFLAGS := -fPIC -fvisibility=hidden
GPU_LDFLAGS := -shared -Wl,--exclude-libs,ALL -pthread
# -fmad=false: the bits are those that the source says (kernels.h). PTX of 7.5 for devices to come.
NVCC_FLAGS := -O3 -fmad=false -allow-unsupported-compiler -gencode arch=compute_75,code=compute_75 -gencode arch=compute_90,code=sm_90 -I. \
  -Xcompiler -fPIC,-fvisibility=hidden,-fno-threadsafe-statics,-fno-exceptions,-fno-rtti
FAKES := $(OUT)/tests/fakes
FAKE_GPU := $(FAKES)/libcudart-fake.so $(FAKES)/libnccl.so.2 $(FAKES)/ranktrain_cuda.so $(FAKES)/driver/libcuda.so.1
FAKE_NVML := $(FAKES)/nvml/libnvidia-ml.so.1

# The wall clock of a job's programs, into which the loader puts it: never instrumented, as they are not.
CLOCK := $(BIN)/rankquake_clock.so

PROGRAMS := $(addprefix $(BIN)/,rankrun rankquake rankprobe ranktrain rankquake-node)
TESTS := $(patsubst tests/%.c,$(OUT)/tests/%,$(filter %.c,$(shell find tests -name 'test_*.c' 2>/dev/null)))
SPAWNEES := $(patsubst tests/%.c,$(OUT)/tests/%,$(shell find tests -name 'spawn_*.c' 2>/dev/null))
Q := $(if $(V),,@)
# Whoever types make demo or make test gets all cores, unless -j was given.
ALL_CORES = $(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

all: $(PROGRAMS) $(GPU) $(TLS_MODULE) $(CLOCK)

$(BIN)/rankrun: $(OUT)/agent/main.o $(call archive,agent base) $(TLS_EXPORTS)
$(BIN)/rankquake: $(OUT)/harness/main.o $(call archive,reports harness faults agent base)
# Copied to hosts that have nothing else of ours. What a name server is asked for needs the C library of
# its build there, and the linker says so; nothing that such a host is asked for does that.
$(BIN)/rankquake-node: $(OUT)/harness/node/main.o $(call archive,harness faults agent base)
$(BIN)/rankprobe: $(OUT)/harness/probe/main.o $(call archive,base)
$(BIN)/ranktrain: $(OUT)/scenarios/jobs/ranktrain/main.o $(call archive,job base)
$(PROGRAMS): $(PORTABLE)
	@mkdir -p $(@D); echo "  LD   $@"
	$(Q)$(CC) $(LDFLAGS.$(BUILD)) $(BUNDLE_RPATH) $(LDFLAGS) $(LDFLAGS.$(@F)) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDLIBS.$(@F))

$(CLOCK): faults/clock/preload/preload.c faults/mechanism/clock_page.h base/err.h $(OUT)/.flags
	@mkdir -p $(@D); echo "  LD   $@"
	$(Q)$(CC) -std=c11 -g -O2 $(filter -ffile-prefix-map=%,$(CFLAGS.$(BUILD))) -I. -D_GNU_SOURCE $(WARN) -fPIC -shared -fvisibility=hidden -Wl,-z,relro -o $@ $< -ldl

$(OUT)/tls/%.o: %.c $(OUT)/.flags
	@mkdir -p $(@D); echo "  CC   $< (TLS)"
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC $(CPPFLAGS) -MMD -MP -c -o $@ $<
$(BIN)/rankrun_tls.so: $(OUT)/tls/agent/tls/module/module.o $(addprefix $(OUT)/tls/base/,err.o printable.o utf8.o buf.o) agent/tls/module/exports
	@mkdir -p $(@D); echo "  LD   $@"
	$(Q)$(CC) $(LDFLAGS.$(BUILD)) $(LDFLAGS) $(TLS_LDFLAGS) -Wl,--version-script=agent/tls/module/exports -o $@ $(filter %.o,$^) $(TLS_LDLIBS)
# What rankrun exports to it.
$(OUT)/tls/exports: $(BIN)/rankrun_tls.so
	@mkdir -p $(@D)
	$(Q){ echo '{'; $$($(CC) -print-prog-name=nm) -D --undefined-only $< | sed -n 's/.* \(\(bufferevent\|evbuffer\|event\|evutil\)_.*\)/    \1;/p'; echo '};'; } >$@

$(OUT)/gpu/%.o: %.c $(OUT)/.flags
	@mkdir -p $(@D); echo "  CC   $< (CUDA)"
	$(Q)$(CC) $(ALL_CFLAGS) $(GPU_CFLAGS) -isystem $(CUDA)/include $(CPPFLAGS) -MMD -MP -c -o $@ $<
$(OUT)/gpu/%.o: %.cu $(OUT)/gpu/.flags
	@mkdir -p $(@D); echo "  NVCC $<"
	$(Q)$(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<
$(BIN)/ranktrain_cuda.so: $(patsubst %.c,$(OUT)/gpu/%.o,$(GPU_SRC)) $(OUT)/gpu/$(GPU_KERNELS).o
	@mkdir -p $(@D); echo "  LD   $@"
	$(Q)$(CC) $(LDFLAGS.$(BUILD)) $(LDFLAGS) $(GPU_LDFLAGS) -o $@ $^ $(CUDART) -lrt -ldl

$(FAKES)/gpu/%.o: %.c $(OUT)/.flags
	@mkdir -p $(@D); echo "  CC   $< (fake CUDA)"
	$(Q)$(CC) $(ALL_CFLAGS) $(GPU_CFLAGS) -isystem tests/fakes/cudart $(CPPFLAGS) -MMD -MP -c -o $@ $<
$(FAKES)/gpu/%.o: %.cu $(OUT)/.flags
	@mkdir -p $(@D); echo "  CC   $< (fake CUDA)"
	$(Q)$(CC) $(ALL_CFLAGS) -O3 $(GPU_CFLAGS) -isystem tests/fakes/cudart $(CPPFLAGS) -MMD -MP -x c -c -o $@ $<
$(FAKES)/gpu/tests/%.o: GPU_CFLAGS := -fPIC
$(FAKES)/libcudart-fake.so: $(patsubst %.c,$(FAKES)/gpu/%.o,$(wildcard tests/fakes/cudart/*.c))
	@mkdir -p $(@D); echo "  LD   $@"
	$(Q)$(CC) $(LDFLAGS.$(BUILD)) $(LDFLAGS) -shared -pthread -Wl,-soname,$(@F) -o $@ $^
$(FAKES)/driver/libcuda.so.1: $(FAKES)/gpu/tests/fakes/driver/libcuda.o
	@mkdir -p $(@D); echo "  LD   $@"
	$(Q)$(CC) $(LDFLAGS.$(BUILD)) $(LDFLAGS) -shared -o $@ $^
$(FAKES)/gpu/tests/fakes/nccl/%.o: GPU_CFLAGS := -fPIC -fvisibility=hidden
$(FAKES)/libnccl.so.2: $(patsubst %.c,$(FAKES)/gpu/%.o,$(wildcard tests/fakes/nccl/*.c)) $(FAKES)/libcudart-fake.so
	@mkdir -p $(@D); echo "  LD   $@"
	$(Q)$(CC) $(LDFLAGS.$(BUILD)) $(LDFLAGS) -shared -pthread -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN' -o $@ $^
$(FAKES)/ranktrain_cuda.so: $(patsubst %.c,$(FAKES)/gpu/%.o,$(GPU_SRC)) $(FAKES)/gpu/$(GPU_KERNELS).o $(FAKES)/libcudart-fake.so
	@mkdir -p $(@D); echo "  LD   $@"
	$(Q)$(CC) $(LDFLAGS.$(BUILD)) $(LDFLAGS) $(GPU_LDFLAGS) -Wl,-rpath,'$$ORIGIN' -o $@ $^

# Some 300 programs are linked for the tests, which gold does in half the time.
TEST_LINKER := $(if $(filter fast,$(BUILD)),,$(if $(shell command -v ld.gold),-fuse-ld=gold))
$(OUT)/tests/%: $(OUT)/tests/%.o $(call archive,reports harness faults job agent base)
	@mkdir -p $(@D); echo "  LD   $@"
	$(Q)$(CC) $(LDFLAGS.$(BUILD)) $(TEST_LINKER) $(LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group \
	  -pthread -lcmocka -lfyaml -levent_core -levent_extra -lz -lm -ldl

$(FAKE_NVML): tests/fakes/nvml/nvml.c $(OUT)/.flags
	@mkdir -p $(@D); echo "  FAKE $@"
	$(Q)$(CC) $(ALL_CFLAGS) $(CPPFLAGS) -fPIC -shared -fvisibility=hidden $(LDFLAGS.$(BUILD)) $(LDFLAGS) -o $@ $<

# What several tests of a folder share.
$(addprefix $(OUT)/tests/agent/,tls/test_tls store/test_server_tls): | $(TLS_MODULE)
$(OUT)/tests/faults/clock/test_preload: | $(CLOCK)
$(OUT)/tests/fakes/test_cudart: $(addprefix $(OUT)/tests/fakes/cudart/,device.o memory.o stream.o)
$(filter $(OUT)/tests/scenarios/jobs/ranktrain/gpu/%,$(TESTS) $(SPAWNEES)) $(OUT)/tests/fakes/test_nccl: | $(FAKE_GPU)
$(addprefix $(OUT)/tests/agent/core/,test_coordinator test_leave test_lifeline test_rendezvous test_rounds test_session test_standby): $(OUT)/tests/agent/core/script.o
$(OUT)/tests/agent/test_agent: $(OUT)/tests/agent/agent_doubles.o
$(OUT)/tests/agent/test_typed: $(addprefix $(OUT)/tests/agent/,typed.o options_facts.o)
# What it asks of its host is what a line says of it.
$(OUT)/tests/agent/test_typed: LDFLAGS += $(addprefix -Wl$(comma)--wrap=,file_read file_read_plain random_u64 token_draw sysconf opendir host_name_full srun_find)
$(OUT)/tests/agent/test_agent_lifeline: LDFLAGS += $(addprefix -Wl$(comma)--wrap=,send tcp_ends)
$(OUT)/tests/agent/test_agent_timer: LDFLAGS += -Wl,--wrap=file_timer_forget
$(OUT)/tests/agent/test_host_name: LDFLAGS += $(addprefix -Wl$(comma)--wrap=,gethostname getaddrinfo freeaddrinfo loop_timer_at pthread_create)
$(OUT)/tests/agent/test_told: LDFLAGS += $(addprefix -Wl$(comma)--wrap=,gethostname clock_realtime_ns)
$(addprefix $(OUT)/tests/harness/run/,test_targets test_timeline test_triggers test_until test_sticky test_inquiry): $(OUT)/tests/harness/run/stage.o
$(addprefix $(OUT)/tests/agent/legacy/,test_fleet test_gang test_record test_seeds): $(addprefix $(OUT)/tests/agent/legacy/,fleet.o tree_model.o)
$(OUT)/tests/agent/legacy/test_record: $(addprefix $(OUT)/tests/agent/legacy/,alone.o peers.o)
$(addprefix $(OUT)/tests/harness/judge/checks/,test_altered test_asked test_cases test_checks test_combined test_doubt test_lost test_changes test_fields test_spoiled test_struck test_turns test_verdicts): $(OUT)/tests/harness/judge/checks/cases.o
$(addprefix $(OUT)/tests/harness/judge/checks/,test_altered test_asked test_changes test_combined test_doubt test_fields test_spoiled test_struck test_turns test_verdicts): $(addprefix $(OUT)/tests/harness/judge/checks/,alterations.o verdicts.o)
$(OUT)/tests/harness/judge/checks/test_altered: $(OUT)/tests/harness/judge/checks/case_alterations.o
$(addprefix $(OUT)/tests/harness/judge/checks/,test_altered test_turns): $(OUT)/tests/harness/judge/checks/turn.o
$(addprefix $(OUT)/tests/harness/judge/checks/,test_altered test_asked test_combined test_struck test_turns): $(OUT)/tests/harness/judge/checks/opened_case.o
$(addprefix $(OUT)/tests/harness/judge/checks/,test_asked test_combined test_fields): $(OUT)/tests/harness/judge/checks/asked.o
$(OUT)/tests/harness/cluster/spawn_cluster: $(OUT)/tests/harness/cluster/theatre.o

# Made anew too when an object comes or goes that is not newer, as one of a file that was moved.
$(foreach l,$(LIBS) job,$(eval $(OUT)/lib$(l).a: $(OBJ.$(l))))
$(OUT)/lib%.a: $(OUT)/.members-%
	@mkdir -p $(@D); rm -f $@; echo "  AR   $@"
	$(Q)$(AR) rcs $@ $(filter %.o,$^)
$(OUT)/.members-%: FORCE
	@mkdir -p $(@D); echo '$(OBJ.$*)' | cmp -s - $@ || echo '$(OBJ.$*)' >$@

$(OUT)/%.o: %.c $(OUT)/.flags
	@mkdir -p $(@D); echo "  CC   $<"
	$(Q)$(CC) $(ALL_CFLAGS) $(CPPFLAGS) -MMD -MP -c -o $@ $<

# Rewritten only when the flags differ, so that a changed flag rebuilds everything and nothing else does.
$(OUT)/.flags: FORCE
	@mkdir -p $(@D); echo '$(CC) $(ALL_CFLAGS) $(CPPFLAGS)' | cmp -s - $@ || echo '$(CC) $(ALL_CFLAGS) $(CPPFLAGS)' > $@

$(OUT)/.core: FORCE
	@mkdir -p $(@D); echo '$(CORE)' | cmp -s - $@ || echo '$(CORE)' > $@

$(OUT)/gpu/.flags: FORCE
	@mkdir -p $(@D); echo '$(NVCC) $(NVCC_FLAGS)' | cmp -s - $@ || echo '$(NVCC) $(NVCC_FLAGS)' > $@

deps:
	$(Q)$(if $(filter 0,$(DEPS)),true,ci/deps)
demo: deps
	+$(Q)$(ALL_CORES) all
	$(Q)$(BIN)/rankquake run scenarios/tour.yaml
test: deps
	+$(Q)$(ALL_CORES) all test-programs
	$(Q)BUILD=$(BUILD) BIN=$(BIN) OUT=$(OUT) ci/test
# A saver without a loader, where there is an archive of the C library; sanitizers want the shared one.
STATIC_SAVER := $(if $(filter asan tsan cov,$(BUILD)),,$(if $(filter /%,$(shell $(CC) -print-file-name=libc.a)),$(OUT)/tests/harness/crash/saver-static))
$(OUT)/tests/harness/crash/saver-static: $(OUT)/tests/harness/crash/spawn_saver.o $(call archive,base)
	@mkdir -p $(@D); echo "  LD   $@"
	$(Q)$(CC) $(LDFLAGS.$(BUILD)) $(LDFLAGS) -static -o $@ $^

test-programs: $(STATIC_SAVER) $(TESTS) $(SPAWNEES) $(FAKE_GPU) $(FAKE_NVML) fuzz-programs
soak bench: all test-programs
	$(Q)BUILD=$(BUILD) BIN=$(BIN) OUT=$(OUT) ci/$@
mutants: all
	$(Q)TMPDIR=$$(mktemp -d) BUILD=$(BUILD) BIN=$(BIN) OUT=$(OUT) bash tests/soak/mutants.sh
# Finds where bugs can be planted into our sources; ci/mutate says what to install where libclang is not.
LIBCLANG := $(patsubst %/lib/libclang.so,%,$(lastword $(sort $(wildcard /usr/lib/llvm-*/lib/libclang.so))))
$(OUT)/mutate: $(wildcard tests/mutate/*.[ch] tests/mutate/operators/*.[ch]) $(call archive,reports base) $(OUT)/.flags
	@echo "  LD   $@"
	$(Q)$(CC) $(ALL_CFLAGS) $(CPPFLAGS) -isystem $(LIBCLANG)/include $(LDFLAGS.$(BUILD)) $(LDFLAGS) -o $@ $(filter %.c %.a,$^) -L$(LIBCLANG)/lib -Wl,-rpath,$(LIBCLANG)/lib -lclang
mutate:
	$(Q)ci/mutate
site:
	$(Q)ci/site
# The same programs are built by a fuzzer's compiler into folders of their own, by the scripts.
$(OUT)/fuzz-schedule: $(call archive,harness faults agent base)
$(OUT)/fuzz-input $(OUT)/fuzz-connections: $(call archive,agent base)
$(OUT)/fuzz-history $(OUT)/fuzz-scenario: $(call archive,$(LIBS))
$(OUT)/fuzz-record: $(call archive,reports harness faults job agent base)
# What the loader reads is what the fuzzer gives it.
$(OUT)/fuzz-scenario: LDFLAGS += -Wl,--wrap=source_read,--wrap=source_read_into
FUZZED := schedule input connections history scenario record
fuzz-programs: $(addprefix $(OUT)/fuzz-,$(FUZZED))
$(addprefix $(OUT)/fuzz-,$(FUZZED)): $(OUT)/fuzz-%: tests/fuzz/%.c tests/fuzz/fuzzed.h $(OUT)/.flags
	$(Q)$(CC) $(ALL_CFLAGS) $(CPPFLAGS) $(LDFLAGS.$(BUILD)) $(LDFLAGS) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -pthread -lfyaml -levent_extra -levent_core -lz -ldl -lm
FUZZ_S ?= 600
fuzz:
	$(Q)for what in fuzz $(addprefix fuzz-,$(filter-out schedule,$(FUZZED))); do TMPDIR=$$(mktemp -d) FUZZ_S=$(FUZZ_S) BUILD=$(BUILD) OUT=$(OUT) bash tests/soak/$$what.sh || exit 1; done
# Builds the trees first (root, some 4 GB, minutes); LAUNCHERS without an @ need none.
LAUNCHERS ?= rankrun@sid torchrun@bookworm torchrun@trixie torchrun@sid
SCENARIOS ?= scenarios/pytorch
compare: all
	$(Q)$(if $(findstring @,$(LAUNCHERS)),ci/peers $(sort $(foreach l,$(LAUNCHERS),$(word 2,$(subst @, ,$(l))))))
	$(Q)$(BIN)/rankquake compare $(addprefix --launcher ,$(LAUNCHERS)) $(SCENARIOS)
# Written anew on purpose, after a change of the protocol or of the simulator: the diff is to be read.
TRANSCRIPTS := $(patsubst %.yaml,%.txt,$(wildcard tests/harness/sim/transcripts/*.yaml))
# Tests that hold what they see against a record write it on --write.
RECORDS = $(patsubst %.c,$(OUT)/%,$(shell grep -lwE 'on_record_main|on_record_written|played_main' $$(find tests -name 'test_*.c') | sort))
transcripts: $(OUT)/tests/harness/sim/spawn_transcript $(RECORDS)
	@for t in $(TRANSCRIPTS); do $< $${t%.txt}.yaml >$$t || exit 1; done
	@for r in $(RECORDS); do $$r --write || exit 1; done
# After a change of a check, or of a case: the diff is what it says differently now.
verdicts: $(addprefix $(OUT)/tests/harness/judge/checks/,test_altered test_asked test_changes test_combined test_doubt test_fields test_forecast test_spoiled test_struck test_turns test_verdicts)
	$(Q)for t in $^; do $$t --fill || exit 1; done
tidy:
	$(Q)OUT=$(OUT) ci/tidy
format:
	$(Q)clang-format -i $(shell git ls-files '*.c' '*.h')
install: all
	$(Q)DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) BIN=$(BIN) ci/package/install
uninstall:
	$(Q)DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) ci/package/install --remove
PACKAGES ?= deb,tarball,wheel,image
package:
	+$(Q)$(MAKE) --no-print-directory BUILD=portable NVCC= all
	$(Q)PACKAGES=$(PACKAGES) ci/package/build
clean:
	rm -rf build
help:
	@sed -n '/^[^#]/q;s/^# \{0,1\}//p' Makefile

.PHONY: all deps demo test test-programs soak mutants mutate site bench fuzz fuzz-programs compare transcripts verdicts tidy format install uninstall package clean help FORCE
.SECONDARY:
-include $(shell find $(OUT) -name '*.d' 2>/dev/null)
