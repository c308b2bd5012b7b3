#include "channel-end.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "causes.h"
#include "channel-input.h"
#include "channel-output.h"
#include "channel-tree.h"
#include "runner.h"

/* A stream or a process that outlives its command may delay the result for this long. */
#define HOLD_MS 250

static bool is_tree_unwanted(const struct channel *c) {
    return c->kind == CHANNEL_COMMAND_AND_TREE || c->tree.step != TREE_UNTOUCHED;
}

/* A process may still print its last lines, as at the other end of a process substitution, so it gets a moment to end by itself. */
static void end_leftovers(struct runner *r, struct channel *c) {
    if (now_ms() < c->hold_ms) {
        wake_at(r, c->hold_ms);
        return;
    }
    channel_end_tree(r, c, c->grace_ms);
    if (c->tree.was_heard) c->exit_flags |= EXIT_TREE_ENDED;
}

/*
 * A stream that another process holds open must not keep EXIT back for ever, so after HOLD_MS EXIT waits only for the bytes in it
 * then. They belong to the call, however long the host takes to grant credit for them. A call that was cut short does not wait for
 * credit, because nobody may be reading its output any more.
 */
static bool streams_are_done(struct runner *r, struct channel *c) {
    if (!channel_has_output_open(c)) return true;
    if (now_ms() < c->hold_ms) {
        wake_at(r, c->hold_ms);
        return false;
    }
    if (c->phase < CHANNEL_DRAINING) channel_begin_draining(c);
    bool is_cut_short = c->exit_flags & (EXIT_KILLED | EXIT_TIMED_OUT) || c->timeout == TIMEOUT_PASSED;
    return channel_drain(r, c) || (is_cut_short && c->credit == 0);
}

static void send_exit(struct runner *r, struct channel *c) {
    if (channel_has_output_open(c)) c->exit_flags |= EXIT_PIPE_HELD;
    buffer_front(&c->exit)[1] = c->exit_flags;
    link_send(&r->link, FRAME_EXIT, c->id, buffer_front(&c->exit), buffer_length(&c->exit));
    c->phase = CHANNEL_EXITED;
    channel_close_input(r, c);
    channel_watch_output(r, c); /* output is late from here on and needs no credit */
}

static void retire(struct runner *r, struct channel *c) {
    struct channel **at = &r->channels[c->id % CHANNEL_BUCKETS];
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    buffer_free(&c->in.bytes);
    buffer_free(&c->exit);
    c->phase = CHANNEL_RETIRED;
    c->next = r->retired;
    r->retired = c;
}

void channel_finish_if_complete(struct runner *r, struct channel *c) {
    if (c->phase == CHANNEL_ENDED || c->phase == CHANNEL_DRAINING) {
        bool has_leftovers = channel_has_tree(c) && is_tree_unwanted(c);
        if (has_leftovers && c->tree.step == TREE_UNTOUCHED) end_leftovers(r, c);
        if (!has_leftovers && streams_are_done(r, c)) send_exit(r, c);
    }
    if (c->phase == CHANNEL_EXITED && !c->worker && !channel_has_output_open(c)) retire(r, c);
}

void channels_free_retired(struct runner *r) {
    while (r->retired) {
        struct channel *c = r->retired;
        r->retired = c->next;
        free(c);
    }
}

void channel_resume_output(struct runner *r, struct channel *c) {
    channel_watch_output(r, c);
    channel_finish_if_complete(r, c);
}

void channel_on_output(struct runner *r, struct source *s, uint32_t events) {
    (void)events;
    struct channel_output *o = s->owner;
    channel_read_output_event(r, o);
    channel_resume_output(r, o->channel);
}

/* ---- what the worker reports ------------------------------------------------------------------------------------- */

static void write_exit(struct channel *c, const struct worker_report *report, const uint8_t *result) {
    uint8_t head[EXIT_HEAD_BYTES] = {(uint8_t)report->kind};
    put16(head + 2, (uint16_t)report->code);
    put32(head + 4, report->error);
    put32(head + 8, report->stage);
    put64(head + 12, report->user_us);
    put64(head + 20, report->system_us);
    put64(head + 28, report->max_rss);
    put64(head + 36, now_us() - c->started_us);
    buffer_append(&c->exit, head, sizeof head);
    buffer_append(&c->exit, result, report->result_length);
}

/* Processes that an earlier command has left may hold the memory without using it. Then the kernel kills every later command. */
static uint8_t end_memory_holders(struct runner *r) {
    return causes_memory_is_taken(r) && channels_end_leftovers(r) ? EXIT_LEFTOVERS_ENDED : 0;
}

void channel_ended(struct runner *r, struct channel *c, const struct worker_report *report, const uint8_t *result) {
    if (c->phase >= CHANNEL_ENDED) return; /* it was given up before, and its worker reports after all */
    write_exit(c, report, result);
    if (c->kind == CHANNEL_FILE_OPERATION) r->file_ended_ms = now_ms();
    else if (causes_append(r, c, report, &c->exit)) c->exit_flags |= EXIT_OUT_OF_MEMORY | end_memory_holders(r);
    c->phase = CHANNEL_ENDED;
    channel_retry_terminal(r, c);
    c->hold_ms = now_ms() + HOLD_MS;
    channel_finish_if_complete(r, c);
}

void channel_not_started(struct runner *r, struct channel *c, uint32_t stage, int error) {
    uint32_t kind = c->kind == CHANNEL_FILE_OPERATION ? EXIT_FILE : EXIT_NOT_STARTED;
    channel_ended(r, c, &(struct worker_report){.kind = kind, .stage = stage, .error = (uint32_t)error}, NULL);
}

void channel_lost(struct runner *r, struct channel *c) {
    channel_ended(r, c, &(struct worker_report){.kind = EXIT_LOST, .code = SIGKILL}, NULL);
}

static void kill_orphans(struct runner *r, struct channel *c, uint64_t since) {
    if (!pool_kill_orphans(r, since)) c->exit_flags |= EXIT_TREE_LEFT;
}

static void on_empty(struct runner *r, struct channel *c, uint64_t orphans_since) {
    if (is_tree_unwanted(c) && orphans_since) kill_orphans(r, c, orphans_since);
    c->worker = NULL;
    channel_finish_if_complete(r, c);
}

static void on_loss(struct runner *r, struct channel *c, uint64_t orphans_since) {
    c->worker = NULL;
    if (c->kind != CHANNEL_FILE_OPERATION) kill_orphans(r, c, orphans_since);
    channel_lost(r, c);
    channel_finish_if_complete(r, c);
}

const struct job_events channel_job_events = {.on_end = channel_ended, .on_empty = on_empty, .on_loss = on_loss};
