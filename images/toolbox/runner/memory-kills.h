#ifndef BRIG_MEMORY_KILLS_H
#define BRIG_MEMORY_KILLS_H

#include <stdint.h>

/* How many processes of this container the kernel has killed for lack of memory, under cgroup v2 or v1. */
uint64_t memory_kills(void);

#endif
