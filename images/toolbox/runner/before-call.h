/* The kernel's counts, and the file systems that were full, when a command began. */
#ifndef BRIG_BEFORE_CALL_H
#define BRIG_BEFORE_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "counters.h"

struct before_call {
    struct counts counts;
    uint64_t throttled;       /* periods without processors left; only read for a command with a time limit */
    uint64_t forks_of_runner; /* forks that were refused to the runner itself */
    uint32_t full_rooms;      /* bit n: the room at n */
    bool is_noted;
    bool had_company;         /* another command, or processes that one has left, ran at some time meanwhile */
};

#endif
