#include "channel-queue.h"

#include <stdlib.h>

#include "runner.h"

#define FILE_JOBS_AT_ONCE 4
/*
 * If no operation ends for this long, those under way may be blocked, on a slow file system for instance. Then an operation
 * in the queue gets a worker of its own.
 */
#define PATIENCE_MS 20

bool queue_is_needed(const struct runner *r) {
    return r->queue_first || pool_file_jobs(r) >= FILE_JOBS_AT_ONCE || link_is_full(&r->link);
}

bool queue_add(struct runner *r, struct channel *c, const struct frame *request, const struct job_streams *streams) {
    struct queued_file *q = calloc(1, sizeof *q);
    if (!q || buffer_append(&q->request, request->payload, request->length) != 0) {
        free(q);
        return false;
    }
    q->channel = c;
    q->streams = *streams;
    q->since_ms = now_ms();
    if (r->queue_last) r->queue_last->next = q;
    else r->queue_first = q;
    r->queue_last = q;
    c->phase = CHANNEL_QUEUED;
    return true;
}

struct queued_file *queue_take(struct runner *r, struct channel *c) {
    struct queued_file *before = NULL, *q = r->queue_first;
    while (q->channel != c) {
        before = q;
        q = q->next;
    }
    if (before) before->next = q->next;
    else r->queue_first = q->next;
    if (r->queue_last == q) r->queue_last = before;
    c->phase = CHANNEL_RUNNING;
    return q;
}

struct queued_file *queue_take_next(struct runner *r) {
    /* Results may be large, and nothing holds them back once they are made. The host's next ACK brings the loop here again. */
    if (!r->queue_first || link_is_full(&r->link)) return NULL;
    uint64_t since_ms = r->queue_first->since_ms;
    uint64_t until_ms = (since_ms > r->file_ended_ms ? since_ms : r->file_ended_ms) + PATIENCE_MS;
    if (pool_file_jobs(r) >= FILE_JOBS_AT_ONCE && now_ms() < until_ms) {
        wake_at(r, until_ms);
        return NULL;
    }
    return queue_take(r, r->queue_first->channel);
}

void queue_free(struct queued_file *q) {
    buffer_free(&q->request);
    free(q);
}
