#define _GNU_SOURCE
#include "channel-tree.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "runner.h"
#include "tree.h"

#define ASK_AGAIN_MS 10
#define KILL_AGAIN_MS 10
#define REPORT_WITHIN_MS 200 /* the time for the report of a worker that has nothing left below it */
#define GIVE_UP_AFTER_MS 5000
#define SIGNAL_AGAIN_MS 1

bool channel_has_tree(const struct channel *c) { return c->worker && c->tree.step != TREE_GIVEN_UP; }

/* A file operation is not stopped by a signal, because any command could send its worker the same one. */
static bool stop_file_operation(struct runner *r, struct channel *c) {
    c->worker->slot->cancelled = 1;
    close_source(r, &c->in.source); /* the end of its stream wakes the worker, which then looks at `cancelled` */
    close_source(r, &c->out.source);
    return true;
}

static bool terminate(struct channel *c) {
    bool was_heard = tree_signal(c->worker->pid, SIGTERM) > 0;
    tree_signal(c->worker->pid, SIGCONT); /* a stopped process takes SIGTERM only when it goes on */
    return was_heard;
}

/* A command whose request came a moment ago may have no process yet. Then the signal is sent again a little later. */
static void ask_to_end(struct runner *r, struct channel *c) {
    c->tree.was_heard = c->kind == CHANNEL_FILE_OPERATION ? stop_file_operation(r, c) : terminate(c);
    uint64_t again_ms = now_ms() + ASK_AGAIN_MS;
    wake_at(r, c->tree.was_heard || again_ms > c->tree.next_ms ? c->tree.next_ms : again_ms);
}

void channel_end_tree(struct runner *r, struct channel *c, uint32_t grace_ms) {
    if (!c->worker || c->tree.step != TREE_UNTOUCHED) return;
    c->tree.step = TREE_IN_GRACE;
    c->tree.next_ms = now_ms() + grace_ms;
    c->tree.give_up_ms = c->tree.next_ms + GIVE_UP_AFTER_MS;
    ask_to_end(r, c);
}

static void kill_tree(struct runner *r, struct channel *c, uint64_t now) {
    bool seemed_empty = c->tree.step == TREE_SEEMS_EMPTY;
    bool seems_empty = tree_kill(c->worker->pid) == 0;
    worker_continue(c->worker);
    if (now >= c->tree.give_up_ms) {
        c->tree.step = TREE_GIVEN_UP;
        c->exit_flags |= EXIT_TREE_LEFT;
        return;
    }
    /* A worker that has not reported by the second look is itself held up, and has to go too. */
    if (seemed_empty && seems_empty) worker_kill(c->worker);
    c->tree.step = seems_empty ? TREE_SEEMS_EMPTY : TREE_KILLING;
    c->tree.next_ms = now + (seems_empty ? REPORT_WITHIN_MS : KILL_AGAIN_MS);
    wake_at(r, c->tree.next_ms);
}

bool channel_advance_tree_end(struct runner *r, struct channel *c, uint64_t now) {
    if (c->tree.step == TREE_UNTOUCHED || !channel_has_tree(c)) return false;
    if (now >= c->tree.next_ms) kill_tree(r, c, now);
    else if (c->tree.was_heard) wake_at(r, c->tree.next_ms);
    else ask_to_end(r, c);
    return c->tree.step == TREE_GIVEN_UP;
}

static size_t kill_leftovers(const struct runner *r) {
    size_t alive = 0;
    for (int i = 0; i < CHANNEL_BUCKETS; i++)
        for (const struct channel *c = r->channels[i]; c; c = c->next)
            if (c->phase == CHANNEL_EXITED && c->kind != CHANNEL_FILE_OPERATION && channel_has_tree(c)) alive += tree_kill(c->worker->pid);
    return alive;
}

bool channels_end_leftovers(struct runner *r) {
    uint64_t give_up_ms = now_ms() + GIVE_UP_AFTER_MS;
    bool were_there = false;
    while (kill_leftovers(r) > 0) {
        were_there = true;
        if (now_ms() >= give_up_ms) break;
        pool_wait_for_the_killed();
    }
    return were_there;
}

static pid_t process_group(const struct channel *c) {
    pid_t foreground = 0;
    int terminal = c->terminal == TERMINAL_NONE ? -1 : c->out.source.fd;
    if (terminal >= 0 && ioctl(terminal, TIOCGPGRP, &foreground) == 0 && foreground > 0) return foreground;
    return c->worker ? c->worker->slot->child : 0;
}

void channel_send_pending_signals(struct runner *r, struct channel *c) {
    pid_t group = process_group(c);
    if (group <= 0 && c->worker && c->phase < CHANNEL_ENDED) {
        wake_at(r, now_ms() + SIGNAL_AGAIN_MS); /* it has no process yet */
        return;
    }
    for (int number = 1; number <= 64 && group > 0; number++)
        if (c->pending_signals >> (number - 1) & 1) kill(-group, number);
    c->pending_signals = 0;
}
