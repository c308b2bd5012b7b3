#define _GNU_SOURCE
#include "channel.h"

#include <sys/ioctl.h>
#include <termios.h>

#include "channel-end.h"
#include "channel-input.h"
#include "channel-output.h"
#include "channel-start.h"
#include "channel-tree.h"
#include "runner.h"

/* The most credit that a host may leave unused. More can only be a mistake, or an attempt to make the number overflow. */
#define CREDIT_MAX (64 << 20)
#define LAST_SIGNAL 64

static void for_each_channel(struct runner *r, void (*act)(struct runner *, struct channel *, uint64_t), uint64_t now) {
    for (int i = 0; i < CHANNEL_BUCKETS; i++)
        for (struct channel *c = r->channels[i], *next; c; c = next) {
            next = c->next; /* it may be retired meanwhile */
            act(r, c, now);
        }
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static void check_timeout(struct runner *r, struct channel *c, uint64_t now) {
    if (c->timeout != TIMEOUT_AHEAD) return;
    if (now < c->deadline_ms) {
        wake_at(r, c->deadline_ms);
        return;
    }
    c->timeout = TIMEOUT_PASSED;
    if (c->phase >= CHANNEL_ENDED) return;
    c->exit_flags |= EXIT_TIMED_OUT;
    channel_end_tree(r, c, c->grace_ms);
}

static void tick(struct runner *r, struct channel *c, uint64_t now) {
    check_timeout(r, c, now);
    if (channel_advance_tree_end(r, c, now)) channel_lost(r, c);
    if (c->pending_signals) channel_send_pending_signals(r, c);
    channel_retry_terminal(r, c);
    if (c->terminal != TERMINAL_NONE && buffer_length(&c->in.bytes) > 0) channel_write_input(r, c);
    channel_finish_if_complete(r, c);
}

void channels_tick(struct runner *r, uint64_t now) { for_each_channel(r, tick, now); }

static void resume(struct runner *r, struct channel *c, uint64_t now) {
    (void)now;
    channel_resume_output(r, c);
}

void channels_resume_output(struct runner *r) {
    if (!r->output_waits || link_is_full(&r->link)) return;
    r->output_waits = false;
    for_each_channel(r, resume, 0);
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static void take_signal(struct runner *r, struct channel *c, uint8_t number) {
    if (c->kind == CHANNEL_FILE_OPERATION) return;
    c->pending_signals |= UINT64_C(1) << (number - 1);
    channel_send_pending_signals(r, c);
}

static void take_resize(const struct channel *c, uint16_t rows, uint16_t cols) {
    if (c->terminal == TERMINAL_NONE || !is_open(&c->out.source)) return;
    ioctl(c->out.source.fd, TIOCSWINSZ, &(struct winsize){.ws_row = rows, .ws_col = cols});
}

static void take_kill(struct runner *r, struct channel *c, uint32_t grace_ms) {
    if (c->phase < CHANNEL_EXITED) c->exit_flags |= EXIT_KILLED;
    if (c->phase == CHANNEL_QUEUED) channel_cancel_queued(r, c);
    else channel_end_tree(r, c, grace_ms);
    channel_finish_if_complete(r, c);
}

static bool take_credit(struct runner *r, struct channel *c, uint32_t bytes) {
    c->credit += bytes;
    if (c->credit > CREDIT_MAX) return false;
    channel_resume_output(r, c);
    return true;
}

static bool is_valid(const struct frame *frame) {
    switch (frame->type) {
    case FRAME_INPUT: return true;
    case FRAME_SIGNAL: return frame->length == 1 && frame->payload[0] >= 1 && frame->payload[0] <= LAST_SIGNAL;
    case FRAME_RESIZE:
    case FRAME_KILL:
    case FRAME_CREDIT: return frame->length == 4;
    default: return false;
    }
}

bool channel_take_frame(struct runner *r, const struct frame *frame) {
    if (frame->type == FRAME_SPAWN) return channel_start_command(r, frame);
    if (frame->type == FRAME_FILE) return channel_start_file(r, frame);
    if (!is_valid(frame)) return false;
    struct channel *c = channel_find(r, frame->channel);
    if (!c) return true; /* it is over, and the host sent this before it saw the EXIT */
    switch (frame->type) {
    case FRAME_INPUT: return channel_take_input(r, c, frame);
    case FRAME_SIGNAL: take_signal(r, c, frame->payload[0]); return true;
    case FRAME_RESIZE: take_resize(c, get16(frame->payload), get16(frame->payload + 2)); return true;
    case FRAME_KILL: take_kill(r, c, get32(frame->payload)); return true;
    default: return take_credit(r, c, get32(frame->payload));
    }
}
