#include "causes.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pool.h"
#include "runner.h"
#include "wire.h"

/* The exit code with which shells report a process that SIGKILL has ended. */
#define SHELL_KILLED (128 + SIGKILL)
/* A share of the command's time, in thousandths. With less time than this without processors, they are hardly the cause. */
#define MUCH_THROTTLED 250

struct watched *causes_open(struct runner *r) {
    struct watched *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    counters_open(&w->counters);
    rooms_open(&w->rooms);
    const struct counters *c = &w->counters;
    const int files[] = {c->memory_events, c->memory_kills, c->most_memory[0], c->most_memory[1], c->memory_limit, c->refused_forks,
                         c->process_limit, c->most_processes, c->cpu_stat, c->cpu_limit, c->cpu_period};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) note_fd(r, files[i]);
    for (int i = 0; i < w->rooms.count; i++) note_fd(r, w->rooms.list[i].fd);
    return w;
}

/* ---- when a command begins --------------------------------------------------------------------------------------- */

/*
 * The kernel counts for the container, not for a command. So a count, or a directory that has become full, is attributed to a command
 * only if no other could have done it. Beside a runner that is not PID 1 there may always be commands that it does not know of.
 */
static void note_company(struct runner *r, struct channel *c) {
    c->before.had_company = getpid() != 1;
    for (struct worker *w = r->workers; w; w = w->next) {
        if (!w->channel || w->job_kind != JOB_SPAWN) continue;
        w->channel->before.had_company = true;
        c->before.had_company = true;
    }
}

void causes_note_start(struct runner *r, struct channel *c) {
    if (!r->watched) return;
    c->before.is_noted = true;
    note_company(r, c);
    c->before.counts = counters_read(&r->watched->counters);
    c->before.forks_of_runner = r->refused_forks;
    if (c->timeout != TIMEOUT_NONE) c->before.throttled = counters_throttled(&r->watched->counters);
    struct rooms *rooms = &r->watched->rooms;
    for (int i = 0; i < rooms->count; i++) {
        uint64_t total;
        if (room_lack(&rooms->list[i], &total) == LACKS_NOTHING) continue;
        c->before.full_rooms |= UINT32_C(1) << i;
        room_note(&rooms->list[i]);
    }
}

/* ---- when it has failed ------------------------------------------------------------------------------------------ */

static void append(struct buffer *out, struct cause cause) {
    size_t length = cause.path ? strlen(cause.path) : 0;
    uint8_t head[CAUSE_HEAD_BYTES] = {cause.kind, cause.flags};
    put16(head + 2, (uint16_t)length);
    put64(head + 4, cause.limit == COUNT_UNKNOWN ? 0 : cause.limit);
    put16(head + 12, cause.share);
    uint8_t *at = buffer_reserve(out, sizeof head + length);
    if (!at) return;
    memcpy(at, head, sizeof head);
    if (length > 0) memcpy(at + sizeof head, cause.path, length);
    buffer_commit(out, sizeof head + length);
}

static bool has_risen(uint64_t before, uint64_t now) { return before != COUNT_UNKNOWN && now != COUNT_UNKNOWN && now > before; }

/* Whether something else than brig killed it. Brig itself ends commands that are timed out or not wanted any more. */
static bool was_killed(const struct channel *c, const struct worker_report *report) {
    if (c->exit_flags & (EXIT_TIMED_OUT | EXIT_KILLED)) return false;
    bool by_signal = report->kind == EXIT_SIGNALLED || report->kind == EXIT_LOST;
    return by_signal ? report->code == SIGKILL : report->kind == EXIT_EXITED && report->code == SHELL_KILLED;
}

/* A limit outside of the container, or the machine's own, may kill its processes too. Then its own limit was not reached. */
static bool append_memory(struct runner *r, const struct channel *c, const struct worker_report *report, struct buffer *out) {
    struct counts now = counters_read(&r->watched->counters);
    const struct counts *before = &c->before.counts;
    if (!has_risen(before->memory_kills, now.memory_kills)) return false;
    if (c->before.had_company && !was_killed(c, report)) return false;
    uint64_t limit = counters_memory_limit(&r->watched->counters, before, &now);
    append(out, (struct cause){.kind = CAUSE_MEMORY, .flags = limit == COUNT_UNKNOWN ? CAUSE_OUTSIDE : 0, .limit = limit});
    return true;
}

/*
 * The count includes the runner's own attempts to have workers ready. But if the command could not be started because there was no
 * process for it, then it is the one that was refused, whatever else ran.
 */
static bool lacked_a_process(const struct runner *r, const struct channel *c, const struct worker_report *report, uint64_t now) {
    uint64_t before = c->before.counts.refused_forks;
    if (!has_risen(before, now)) return false;
    if (report->kind == EXIT_NOT_STARTED) return report->stage == STAGE_FORK && report->error == EAGAIN;
    return !c->before.had_company && now - before > r->refused_forks - c->before.forks_of_runner;
}

static void append_processes(struct runner *r, const struct channel *c, const struct worker_report *report, struct buffer *out) {
    const struct counters *counters = &r->watched->counters;
    if (!lacked_a_process(r, c, report, counters_read(counters).refused_forks)) return;
    uint64_t limit = counters_process_limit(counters);
    append(out, (struct cause){.kind = CAUSE_PROCESSES, .flags = limit == COUNT_UNKNOWN ? CAUSE_OUTSIDE : 0, .limit = limit});
}

/* Processors can be the cause only for a command that has run out of time. */
static void append_cpu(struct runner *r, const struct channel *c, struct buffer *out) {
    if (!(c->exit_flags & EXIT_TIMED_OUT) || c->before.had_company) return;
    const struct counters *counters = &r->watched->counters;
    uint64_t now = counters_throttled(counters), took_us = now_us() - c->started_us;
    if (!has_risen(c->before.throttled, now) || took_us == 0) return;
    struct cpu_limit limit = counters_cpu_limit(counters);
    if (limit.thousandths == COUNT_UNKNOWN) return;
    double share = 1000.0 * (double)(now - c->before.throttled) * (double)limit.period_us / (double)took_us;
    if (share < MUCH_THROTTLED) return;
    append(out, (struct cause){.kind = CAUSE_CPU, .share = share > 1000 ? 1000 : (uint16_t)share, .limit = limit.thousandths});
}

/* A file system that was full before is no cause, unless the command has at least tried something there. */
static void append_full(struct runner *r, const struct channel *c, struct buffer *out) {
    struct rooms *rooms = &r->watched->rooms;
    for (int i = 0; i < rooms->count; i++) {
        const struct room *room = &rooms->list[i];
        uint64_t total;
        enum room_lack lack = room_lack(room, &total);
        if (lack == LACKS_NOTHING) continue;
        bool was_full = c->before.full_rooms >> i & 1;
        if (was_full && !room_has_changed(room)) continue;
        append(out, (struct cause){
                        .kind = room->is_in_memory ? CAUSE_FULL_MEMORY : CAUSE_FULL_DISK,
                        .flags = (uint8_t)((lack == LACKS_FILES ? CAUSE_FILES : 0) | (was_full ? CAUSE_BEFORE : 0)),
                        .limit = total,
                        .path = room->path,
                    });
    }
}

bool causes_memory_is_taken(const struct runner *r) { return r->watched && counters_memory_is_taken(&r->watched->counters); }

static bool has_failed(const struct worker_report *report) { return report->kind != EXIT_EXITED || report->code != 0; }

bool causes_append(struct runner *r, const struct channel *c, const struct worker_report *report, struct buffer *out) {
    if (!r->watched || !c->before.is_noted || !has_failed(report)) return false;
    bool lacked_memory = append_memory(r, c, report, out);
    append_processes(r, c, report, out);
    append_cpu(r, c, out);
    if (!c->before.had_company && report->kind != EXIT_NOT_STARTED) append_full(r, c, out);
    return lacked_memory;
}
