# tinygpt: `make` builds ./tinygpt, `make check` tests it. `make help` lists the rest.

MODE    ?= release
PREFIX  ?= /usr/local
CC      ?= cc
AR      ?= ar
BUILD   ?= build/$(MODE)
PYTHON  ?= python3
# 1: chat edits its lines by readline; found by pkg-config unless it is said.
WITH_READLINE ?= $(if $(shell pkg-config --exists readline 2>/dev/null && echo found),1,0)
# 0: no libcurl and no libcrypto; `tinygpt pull` says so when asked.
WITH_CURL ?= 1

MACHINE  := $(shell $(CC) -dumpmachine)
IS_CLANG := $(findstring clang,$(shell $(CC) --version))
IS_X86   := $(filter x86_64%,$(MACHINE))

# ---- flags: the user's CPPFLAGS, CFLAGS and LDFLAGS come last and win ----------------------------

WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
        -Wcast-qual -Wwrite-strings -Wundef -Wvla
# Same bits everywhere: no contraction that the source does not ask for, no relaxed floating point.
BASE := -std=c11 -D_GNU_SOURCE -Iinclude -Isrc -fopenmp -ffp-contract=off -fno-math-errno \
        -fno-strict-aliasing -MMD -MP
# Hardened, with what costs no time that can be measured; tests/cli/hardening.sh looks for it in the program.
OPT_release := -O2 -g -fPIE -fstack-protector-strong $(if $(IS_X86),-fstack-clash-protection -fcf-protection) \
               -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3
LINK_release := -pie -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code
OPT_debug   := -O0 -g -DTG_DEBUG
OPT_asan    := -O1 -g -DTG_DEBUG -fsanitize=address,undefined -fno-sanitize-recover=all \
               -fno-omit-frame-pointer
LINK_asan   := -fsanitize=address,undefined
# clang's libFuzzer, see `make fuzz`.
OPT_fuzz    := -O2 -g -DTG_DEBUG -DTG_FUZZ -fsanitize=fuzzer-no-link,address,undefined \
               -fno-sanitize-recover=all -fno-omit-frame-pointer
# clang's counts of branches, see `make coverage`.
OPT_coverage  := -O1
LINK_coverage := -fprofile-instr-generate
ifeq ($(OPT_$(MODE)),)
$(error MODE is release, debug, asan, fuzz or coverage, not '$(MODE)')
endif

# One body, compiled once per instruction set; src/kernel/isa.h names the levels.
LEVELS := scalar $(if $(IS_X86),avx2 avx512)
BODY_OPT := $(if $(filter release,$(MODE)),-O3) $(if $(filter fuzz,$(MODE)),-fno-sanitize=all)
ISA_scalar := $(BODY_OPT) $(if $(filter asan,$(MODE)),-O0)
ISA_avx2   := $(BODY_OPT) -mavx2 -mfma -mf16c
ISA_avx512 := $(ISA_avx2) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni \
              -mprefer-vector-width=512

# The OpenMP build of OpenBLAS, which is loaded at run time: Debian's alternatives may point the plain name at another.
BLAS_DIR := $(wildcard /usr/lib/$(subst -pc-,-,$(MACHINE))/openblas-openmp)
# clang: its own OpenMP run time is there before OpenBLAS is, or that brings a second one.
LIBS := $(if $(IS_CLANG),-lomp) -ljansson $(if $(filter-out 0,$(WITH_CURL)),-lcurl -lcrypto) -lm -lpthread -ldl

READLINE := $(filter-out 0,$(WITH_READLINE))
BASE += $(if $(READLINE),-DTG_WITH_READLINE)
CLI_LIBS := $(if $(READLINE),-lreadline)

OUR_CFLAGS = $(BASE) $(WARN) $(OPT_$(MODE))
ALL_CFLAGS = $(OUR_CFLAGS) $(CPPFLAGS) $(CFLAGS)
LINK       = $(CC) $(ALL_CFLAGS) $(LINK_$(MODE)) $(LDFLAGS)

# ---- sources -------------------------------------------------------------------------------------

BODIES  := $(wildcard src/*/body_*.c)
CLI_SRC := $(wildcard src/cli/*.c)
NET_SRC := $(wildcard src/fetch/net*.c src/fetch/digest.c)
NOT_NET := $(if $(filter-out 0,$(WITH_CURL)),src/fetch/no_net.c,$(NET_SRC))
LIB_SRC := $(filter-out $(BODIES) $(CLI_SRC) $(NOT_NET),$(wildcard src/*.c src/*/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o) $(foreach l,$(LEVELS),$(BODIES:%.c=$(BUILD)/%.$(l).o))
CLI_OBJ := $(CLI_SRC:%.c=$(BUILD)/%.o)
NET_TESTS := tests/fetch/test_net%.c tests/fetch/test_digest.c
TEST_SRC := $(filter-out $(if $(filter 0,$(WITH_CURL)),$(NET_TESTS)),$(wildcard tests/*/test_*.c))
HELPERS := $(BUILD)/tests/support/syscalls.so $(BUILD)/tests/support/clock.so \
           $(if $(filter-out 0,$(WITH_CURL)),$(BUILD)/tests/fetch/driver)
FUZZ_SRC := $(filter-out tests/fuzz/driver.c $(if $(filter 0,$(WITH_CURL)),tests/fuzz/headers.c),$(wildcard tests/fuzz/*.c))
FUZZ    := $(FUZZ_SRC:%.c=$(BUILD)/%)
TESTS   := $(TEST_SRC:%.c=$(BUILD)/%)
# What `make coverage` counts the branches of, all that reads models, tokenizers and saved sessions, and the tests it counts by.
READERS := $(wildcard src/base/json*.c src/token/load_*.c) $(addprefix src/,base/file.c base/utf8.c format/container.c format/container_files.c \
             format/fingerprint.c format/gguf.c format/gguf_split.c format/hf.c format/safetensors.c token/build.c token/vocab.c token/added.c token/bpe.c \
             session/restore.c)
COVERING := $(filter $(addprefix $(BUILD)/tests/,base/% format/% token/% session/% model/test_arch faults/%),$(TESTS)) $(FUZZ)
ifeq ($(MODE),coverage)
$(READERS:%.c=$(BUILD)/%.o): private OUR_CFLAGS += -fprofile-instr-generate -fcoverage-mapping
$(BUILD)/src/base/memory.o: private OUR_CFLAGS += -DTG_ARENA_CHUNK=1
endif
CLI_TESTS := $(sort $(wildcard tests/cli/*.sh))

LIB := $(BUILD)/libtinygpt.a
BIN := $(BUILD)/tinygpt

# tinygpt too: the copy at the top may be newer, and come from another build folder.
.DEFAULT_GOAL := all
.PHONY: FORCE all tinygpt check check-models check-layers asan fuzz fuzz-run coverage coverage-run analyze bench bench-attention format install install-strip \
        uninstall help clean
.DELETE_ON_ERROR:

all: tinygpt ## build ./tinygpt (MODE=release, debug or asan)

tinygpt: $(BIN)
	@cmp -s $< $@ || cp $< $@

$(BIN): $(CLI_OBJ) $(LIB)
	$(LINK) -o $@ $^ $(CLI_LIBS) $(LIBS)

# What WITH_CURL=0 makes, from the same objects but a few: for its test.
NO_CURL := $(BUILD)/tinygpt-no-curl
$(NO_CURL): $(CLI_OBJ) $(filter-out $(NET_SRC:%.c=$(BUILD)/%.o),$(LIB_OBJ)) $(BUILD)/src/fetch/no_net.o
	$(LINK) -o $@ $^ $(CLI_LIBS) $(filter-out -lcurl -lcrypto,$(LIBS))

$(LIB): $(LIB_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^

# Another compiler or other flags make everything anew.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(subst ','\'',$(CC) $(ALL_CFLAGS) $(foreach l,$(LEVELS),$(ISA_$(l))) $(LIBS))' | cmp -s - $@ || \
	 echo '$(subst ','\'',$(CC) $(ALL_CFLAGS) $(foreach l,$(LEVELS),$(ISA_$(l))) $(LIBS))' >$@

define body_rule
$(BUILD)/%.$(1).o: %.c $(BUILD)/flags
	@mkdir -p $$(@D)
	$$(CC) $$(OUR_CFLAGS) $$(ISA_$(1)) $$(CPPFLAGS) $$(CFLAGS) -DTG_ISA_LEVEL=TG_ISA_$(1) -DTG_ISA_NAME=$(1) -c -o $$@ $$<
endef
$(foreach l,$(LEVELS),$(eval $(call body_rule,$(l))))

# The catalogue's lines as rows of a table.
$(BUILD)/fetch/catalog.inc: models/catalog.txt
	@mkdir -p $(@D)
	awk '!/^#/ && NF == 5 { gsub(/[^ ]+/, "\"&\"", $$0); printf "    {%s, %s, %s, %s, ", $$1, $$2, $$3 == "\"-\"" ? "NULL" : $$3, $$4; \
	     gsub(/"/, "", $$5); print $$5 "000000ull}," }' $< >$@
$(BUILD)/src/fetch/catalog.o: $(BUILD)/fetch/catalog.inc
$(BUILD)/src/fetch/catalog.o: private BASE += -I$(BUILD)
$(BUILD)/src/kernel/blas.o: private BASE += -DTG_BLAS_DIR='"$(BLAS_DIR:%=%/)"'

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -DTG_LEVELS_$(if $(IS_X86),x86,plain) -c -o $@ $<

$(BUILD)/tests/%: tests/%.c $(LIB)
	@mkdir -p $(@D)
	$(LINK) -Itests -o $@ $< $(LIB) -lcmocka $(LIBS)

# Preloaded into the program under test.
$(BUILD)/tests/support/%.so: tests/support/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(BASE) $(WARN) -O2 -fPIC -shared -o $@ $< -ldl

# Tests of the command line see its parts, all but main.
CLI_PARTS := $(filter-out %/main.o,$(CLI_OBJ))
$(BUILD)/tests/cli/%: tests/cli/%.c $(CLI_PARTS) $(LIB)
	@mkdir -p $(@D)
	$(LINK) -Itests -o $@ $< $(CLI_PARTS) $(LIB) -lcmocka $(CLI_LIBS) $(LIBS)

# Fuzz targets, of which each takes what it needs of either library.
$(BUILD)/tests/fuzz/cli.a: $(CLI_PARTS)
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/tests/fuzz/%: tests/fuzz/%.c $(BUILD)/tests/fuzz/driver.o $(BUILD)/tests/fuzz/cli.a $(LIB)
	@mkdir -p $(@D)
	$(LINK) $(if $(filter fuzz,$(MODE)),-fsanitize=fuzzer) -Itests -o $@ $(filter %.c %.o %.a,$^) -lcmocka $(CLI_LIBS) $(LIBS)

$(BUILD)/tests/fuzz/driver.o: private BASE += -Itests

# ---- tests ---------------------------------------------------------------------------------------

check: $(TESTS) $(FUZZ) $(HELPERS) tinygpt $(NO_CURL) check-layers $(BUILD)/tools/attention-bench ## every test that needs neither network nor weights
	@BUILD=$(BUILD) TINYGPT_NO_CURL=$(NO_CURL) tests/run $(TESTS) $(FUZZ) -- $(CLI_TESTS)

check-layers: ## does the code respect the include table of the layers?
	@tools/check-layers

check-models: tinygpt $(BUILD)/tests/models/score $(BUILD)/tests/token/driver ## tests on real models and tokenizers, from PyPI
	@tests/models/run ./tinygpt $(BUILD)/tests/models/score
	@tests/models/tokens $(BUILD)/tests/token/driver
	@tests/models/hub
	@tests/models/reports ./tinygpt
	@tests/models/readers ./tinygpt

fuzz: ## libFuzzer on each reader of foreign files for T seconds (T=60 TARGET=gguf); fails on a finding
	@$(MAKE) --no-print-directory MODE=fuzz CC=$(if $(IS_CLANG),$(CC),clang) fuzz-run

fuzz-run: $(or $(TARGET:%=$(BUILD)/tests/fuzz/%),$(FUZZ))
	@BUILD=$(BUILD) tests/fuzz/run $(or $(T),60) $(TARGET)

asan: ## `make check` under the address and undefined-behaviour sanitizers
	@$(MAKE) --no-print-directory MODE=asan check

$(BUILD)/tools/%: tools/%.c $(LIB)
	@mkdir -p $(@D)
	$(LINK) -Itools -o $@ $< $(LIB) $(LIBS) $(BLAS_DIR:%=-L%) -lopenblas

bench-attention: $(BUILD)/tools/attention-bench ## softmax and attention, each algorithm against its opponents
	@$< -t 2 --csv $(BUILD)/attention.csv

bench: tinygpt ## speed on the model that comes along, by one thread and by two
	@./tinygpt bench -t 1,2

format: ## lay out by .clang-format what tracked sources have new since the last commit (needs clang-format)
	git clang-format --force --quiet --extensions c,h

coverage: ## which branches of the readers does no test take? fails beyond tools/coverage.txt; needs clang and llvm
	@$(MAKE) --no-print-directory MODE=coverage CC=$(if $(IS_CLANG),$(CC),clang) coverage-run

coverage-run: $(COVERING) $(HELPERS) $(BIN)
	@rm -rf $(BUILD)/counts
	@LLVM_PROFILE_FILE=$(abspath $(BUILD))/counts/%4m.profraw BUILD=$(BUILD) TINYGPT=$(BIN) tests/run $(COVERING) -- \
	 tests/cli/forms.sh tests/cli/session.sh
	@tools/coverage $(BIN) $(BUILD)/counts $(READERS)

analyze: $(BUILD)/fetch/catalog.inc ## what gcc's analyzer, clang-tidy and cppcheck find beyond tools/analyze.txt
	@tools/analyze $(filter-out -MMD -MP,$(BASE)) -I$(BUILD) -DTG_LEVELS_$(if $(IS_X86),x86,plain) '-DTG_BLAS_DIR=""'

# ---- installation --------------------------------------------------------------------------------

SHARE := $(DESTDIR)$(PREFIX)/share
VERSION := $(shell sed -n 's/^.define TG_VERSION "\(.*\)"/\1/p' include/tinygpt/tinygpt.h)

# What a program that uses the library is built with.
define PKG_CONFIG
prefix=$(PREFIX)
Name: tinygpt
Description: inference engine for GPT models on CPUs
Version: $(VERSION)
Cflags: -I$${prefix}/include
Libs: -L$${prefix}/lib -ltinygpt -fopenmp $(LIBS)
endef
export PKG_CONFIG

INSTALLED := bin/tinygpt lib/libtinygpt.a lib/pkgconfig/tinygpt.pc include/tinygpt/tinygpt.h share/man/man1/tinygpt.1 \
             share/bash-completion/completions/tinygpt share/zsh/site-functions/_tinygpt \
             share/fish/vendor_completions.d/tinygpt.fish share/tinygpt/tales.gguf share/tinygpt/README.md

install: all ## install under $(DESTDIR)$(PREFIX): program, library, header, manual page, completions, model
	install -d $(sort $(dir $(INSTALLED:%=$(DESTDIR)$(PREFIX)/%)))
	install $(STRIP) -m 755 tinygpt $(DESTDIR)$(PREFIX)/bin/tinygpt
	install -m 644 $(LIB) $(DESTDIR)$(PREFIX)/lib/libtinygpt.a
	install -m 644 include/tinygpt/tinygpt.h $(DESTDIR)$(PREFIX)/include/tinygpt/tinygpt.h
	install -m 644 models/tales.gguf models/README.md $(SHARE)/tinygpt
	echo "$$PKG_CONFIG" >$(DESTDIR)$(PREFIX)/lib/pkgconfig/tinygpt.pc
	./tinygpt help --man >$(SHARE)/man/man1/tinygpt.1
	./tinygpt completion bash >$(SHARE)/bash-completion/completions/tinygpt
	./tinygpt completion zsh >$(SHARE)/zsh/site-functions/_tinygpt
	./tinygpt completion fish >$(SHARE)/fish/vendor_completions.d/tinygpt.fish

install-strip: ## the same, the program without what debuggers need: a tenth of the size
	@$(MAKE) --no-print-directory install STRIP=-s

uninstall: ## remove what install put there
	rm -f $(INSTALLED:%=$(DESTDIR)$(PREFIX)/%)
	-rmdir $(DESTDIR)$(PREFIX)/include/tinygpt $(SHARE)/tinygpt

clean: ## remove everything that was built
	rm -rf build tinygpt

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 16
	@echo 'variables: MODE (release, debug, asan), CC, CFLAGS, LDFLAGS, BUILD (the folder of a build, say'
	@echo '           build/clang), PREFIX, DESTDIR, WITH_CURL=0, WITH_READLINE=0 (build without)'

FORCE:

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
