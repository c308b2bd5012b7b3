#include "channel-start.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "causes.h"
#include "channel-end.h"
#include "channel-input.h"
#include "channel-output.h"
#include "channel-queue.h"
#include "channel-streams.h"
#include "runner.h"

/* This much output is passed on after EXIT. The rest is read and dropped. */
#define LATE_MAX (1u << 20)

struct channel *channel_find(const struct runner *r, uint32_t id) {
    struct channel *c = r->channels[id % CHANNEL_BUCKETS];
    while (c && c->id != id) c = c->next;
    return c;
}

static void on_input_writable(struct runner *r, struct source *s, uint32_t events) {
    (void)events;
    channel_write_input(r, s->owner);
}

static void prepare_output(struct channel *c, struct channel_output *o, uint8_t frame_type) {
    *o = (struct channel_output){.source = {.on_event = channel_on_output, .owner = o, .fd = -1}, .channel = c, .frame_type = frame_type};
}

static struct channel *open_channel(struct runner *r, uint32_t id, enum channel_kind kind) {
    struct channel *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->id = id;
    c->kind = kind;
    c->phase = CHANNEL_RUNNING;
    c->credit = INITIAL_CREDIT;
    c->late_left = LATE_MAX;
    c->started_us = now_us();
    c->in.source = (struct source){.on_event = on_input_writable, .owner = c, .fd = -1};
    prepare_output(c, &c->out, FRAME_STDOUT);
    prepare_output(c, &c->err, FRAME_STDERR);
    c->next = r->channels[id % CHANNEL_BUCKETS];
    r->channels[id % CHANNEL_BUCKETS] = c;
    return c;
}

static void close_own_streams(struct runner *r, struct channel *c) {
    channel_close_input(r, c);
    close_source(r, &c->err.source);
    close_source(r, &c->out.source);
}

/* Closes the worker's ends of the streams here, whether it got them or not. */
static void start_job(struct runner *r, struct channel *c, const struct frame *request, const struct job_streams *streams) {
    enum job_kind kind = request->type == FRAME_SPAWN ? JOB_SPAWN : JOB_FILE;
    struct job job = {.kind = kind, .channel = c->id, .payload = request->payload, .length = request->length, .fd_count = streams->count};
    memcpy(job.fds, streams->fds, sizeof job.fds);
    if (kind == JOB_SPAWN) causes_note_start(r, c);
    c->worker = pool_start_job(r, c, &job, &channel_job_events);
    int error = errno;
    streams_close(streams);
    if (c->worker) {
        channel_watch_output(r, c);
        return;
    }
    close_own_streams(r, c);
    channel_not_started(r, c, STAGE_FORK, error ? error : EAGAIN);
}

static void refuse_for_want_of_streams(struct runner *r, struct channel *c) {
    int error = errno;
    close_own_streams(r, c);
    channel_not_started(r, c, STAGE_STREAMS, error ? error : EAGAIN);
}

bool channel_start_command(struct runner *r, const struct frame *frame) {
    struct spawn_request request;
    if (!spawn_parse(frame->payload, frame->length, &request) || channel_find(r, frame->channel)) return false;
    bool ends_tree = request.flags & SPAWN_ENDS_TREE;
    struct channel *c = open_channel(r, frame->channel, ends_tree ? CHANNEL_COMMAND_AND_TREE : CHANNEL_COMMAND);
    if (!c) return false;
    c->grace_ms = request.grace_ms;
    if (request.timeout_ms) {
        c->timeout = TIMEOUT_AHEAD;
        c->deadline_ms = now_ms() + request.timeout_ms;
        wake_at(r, c->deadline_ms);
    }
    struct job_streams streams;
    if (streams_for_command(r, c, &request, &streams)) start_job(r, c, frame, &streams);
    else refuse_for_want_of_streams(r, c);
    return true;
}

bool channel_start_file(struct runner *r, const struct frame *frame) {
    struct file_request request;
    if (!file_parse(frame->payload, frame->length, &request) || channel_find(r, frame->channel)) return false;
    struct channel *c = open_channel(r, frame->channel, CHANNEL_FILE_OPERATION);
    if (!c) return false;
    if (request.operation == FILE_RECEIPT) pool_end_commands(r);
    struct job_streams streams;
    if (!streams_for_file(r, c, &request, &streams)) refuse_for_want_of_streams(r, c);
    else if (!queue_is_needed(r) || !queue_add(r, c, frame, &streams)) start_job(r, c, frame, &streams);
    return true;
}

/* ---- the queue --------------------------------------------------------------------------------------------------- */

void channels_start_queued(struct runner *r) {
    struct queued_file *q;
    while ((q = queue_take_next(r))) {
        struct frame request = {.type = FRAME_FILE, .channel = q->channel->id};
        request.payload = buffer_front(&q->request);
        request.length = (uint32_t)buffer_length(&q->request);
        start_job(r, q->channel, &request, &q->streams);
        queue_free(q);
    }
}

void channel_cancel_queued(struct runner *r, struct channel *c) {
    struct queued_file *q = queue_take(r, c);
    streams_close(&q->streams);
    queue_free(q);
    close_own_streams(r, c);
    channel_not_started(r, c, STAGE_NONE, ECANCELED);
}
