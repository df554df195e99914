/* limit.h - what the process may still take of memory, before it takes it. */
#ifndef TG_BASE_LIMIT_H
#define TG_BASE_LIMIT_H

#include "base/error.h"

/* TG_E_RESOURCE, with need and limit, where n_bytes more would not fit into the address space that RLIMIT_AS leaves, or
 * into what the control group allows. Looks at nothing but limits: there may be less. */
tg_status tg_limit_check(uint64_t n_bytes, const char *purpose, tg_error *err);

/* What the control groups of the process allow in all; UINT64_MAX: they set no limit. `root` as tg_group_least has it. */
uint64_t tg_limit_of_groups(const char *root);

#endif
