/* What is known of why a command failed, by what the kernel counts and by which file systems are full. */
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

/* What is watched for all commands. */
struct watched {
    struct counters counters;
    struct rooms rooms;
};

/* NULL for want of memory; then no cause is ever known. */
struct watched *causes_open(struct runner *r);

/* Before the job of a command is given to a worker. */
void causes_note_start(struct runner *r, struct channel *c);

/* Appends a record for each cause of a failure. True if one of them is that memory ran out. */
bool causes_append(struct runner *r, const struct channel *c, const struct worker_report *report, struct buffer *out);
/* Whether what still runs holds so much memory that the next command would lack it too. */
bool causes_memory_is_taken(const struct runner *r);

#endif
