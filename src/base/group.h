/* group.h - the limits that control groups set, of version 1 and 2. */
#ifndef TG_BASE_GROUP_H
#define TG_BASE_GROUP_H

#include <stdint.h>

/* The least that limit_of gives for the folders of the groups that hold this process and of those above them, in
 * hierarchies that have a controller ("cpu", "memory"); UINT64_MAX: no limit. Below `root`, which is "" but for tests,
 * stand proc and sys. */
uint64_t tg_group_least(const char *root, const char *controller, uint64_t (*limit_of)(const char *folder));

/* The numbers that a file of such a folder begins with, at most two; returns how many. "max" is none. */
int tg_group_numbers(const char *folder, const char *name, int64_t number[2]);

#endif
