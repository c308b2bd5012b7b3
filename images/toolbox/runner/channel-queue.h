/*
 * The queue of file operations that wait for a worker. Only a few run at once, because forking a worker for each of fifty costs
 * more than letting them wait.
 */
#ifndef BRIG_CHANNEL_QUEUE_H
#define BRIG_CHANNEL_QUEUE_H

#include "channel-state.h"
#include "channel-streams.h"

struct queued_file {
    struct queued_file *next;
    struct channel *channel;
    struct buffer request;
    struct job_streams streams;
    uint64_t since_ms;
};

/* Whether a new file operation has to wait. */
bool queue_is_needed(const struct runner *r);
/* Takes the streams and a copy of the request; the channel is CHANNEL_QUEUED then. False when memory is out. */
bool queue_add(struct runner *r, struct channel *c, const struct frame *request, const struct job_streams *streams);
/* The next operation that may start now, or NULL. The caller frees it, and the channel is CHANNEL_RUNNING. */
struct queued_file *queue_take_next(struct runner *r);
struct queued_file *queue_take(struct runner *r, struct channel *c);
void queue_free(struct queued_file *q);

#endif
