/* The known causes of a command's failure, found from the kernel's counts and from file systems that are full. */
#ifndef BRIG_CAUSES_H
#define BRIG_CAUSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"
#include "counters.h"
#include "rooms.h"

struct runner;
struct channel;
struct worker_report;

/* A record of the EXIT frame. */
struct cause {
    uint8_t kind, flags;
    uint16_t share; /* in thousandths */
    uint64_t limit; /* or COUNT_UNKNOWN */
    const char *path;
};

/* The counters and file systems that are watched for all commands. */
struct watched {
    struct counters counters;
    struct rooms rooms;
};

/* NULL when there is no memory; then no cause is ever known. */
struct watched *causes_open(struct runner *r);

/* Call this before the job of a command is given to a worker. */
void causes_note_start(struct runner *r, struct channel *c);

/* Appends a record for each cause of a failure. True if one of them is that memory ran out. */
bool causes_append(struct runner *r, const struct channel *c, const struct worker_report *report, struct buffer *out);
/* Whether the processes that still run hold so much memory that the next command would lack it too. */
bool causes_memory_is_taken(const struct runner *r);

#endif
