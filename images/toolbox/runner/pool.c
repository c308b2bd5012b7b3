#define _GNU_SOURCE
#include "pool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runner.h"
#include "tree.h"
#include "worker.h"

#define READY_WORKERS 2
#define IDLE_WORKERS_MAX 6
/* A killed process is gone only once it gets to run, which may take a while on a busy machine. */
#define ORPHAN_PATIENCE_MS 5000
/* A command may have killed every idle worker, and none of them has been reaped yet. */
#define ATTEMPTS 64

bool pool_share_memory(struct runner *r) {
    r->shared_fd = (int)syscall(SYS_memfd_create, "shared", 1u /* MFD_CLOEXEC */);
    if (r->shared_fd < 0 || ftruncate(r->shared_fd, sizeof *r->shared) != 0) return false;
    r->shared = mmap(NULL, sizeof *r->shared, PROT_READ | PROT_WRITE, MAP_SHARED, r->shared_fd, 0);
    return r->shared != MAP_FAILED;
}

static struct worker *find_worker(struct runner *r, pid_t pid) {
    for (struct worker *w = r->workers; w; w = w->next)
        if (w->pid == pid) return w;
    return NULL;
}

/* orphans_kill asks about a pid only, so the runner is a variable of this file meanwhile. */
static struct runner *sweeping;
static int is_worker(pid_t pid) { return find_worker(sweeping, pid) != NULL; }

static struct worker_slot *free_slot(struct runner *r) {
    for (int i = 0; i < WORKER_SLOTS; i++) {
        bool taken = false;
        for (struct worker *w = r->workers; w && !taken; w = w->next) taken = w->slot == &r->shared->slots[i];
        if (!taken) return &r->shared->slots[i];
    }
    errno = EAGAIN;
    return NULL;
}

static void forget(struct runner *r, struct worker *w) {
    struct worker **at = &r->workers;
    while (*at != w) at = &(*at)->next;
    *at = w->next;
    w->slot->supervisor = 0;
    close_source(r, &w->control);
    free_later(r, &w->later);
}

static void wait_for_the_killed(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

bool pool_kill_until_gone(struct runner *r, size_t (*kill_once)(struct runner *, uint64_t since), uint64_t since) {
    uint64_t give_up_ms = now_ms() + ORPHAN_PATIENCE_MS;
    while (kill_once(r, since) > 0) {
        if (now_ms() >= give_up_ms) return false;
        wait_for_the_killed();
    }
    return true;
}

static size_t kill_orphans_once(struct runner *r, uint64_t since) {
    sweeping = r;
    return orphans_kill(is_worker, since);
}

bool pool_kill_orphans(struct runner *r, uint64_t since) { return pool_kill_until_gone(r, kill_orphans_once, since); }

static size_t kill_commands_once(struct runner *r, uint64_t since) {
    size_t alive = kill_orphans_once(r, since);
    for (struct worker *w = r->workers; w; w = w->next)
        if (w->channel && w->job_kind == JOB_SPAWN) alive += tree_kill(w->pid);
    return alive;
}

void pool_end_commands(struct runner *r) { pool_kill_until_gone(r, kill_commands_once, 0); }

/* Asks a worker whether it lives; its answer makes it idle. A worker to which a SIGKILL is on its way does not answer. */
static void question(struct worker *w) {
    static const struct job_header header = {.kind = JOB_ANSWER};
    w->state = WORKER_BUSY;
    w->is_suspect = false;
    bool is_asked = send(w->control.fd, &header, sizeof header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
    if (!w->is_reaped) kill(w->pid, is_asked ? SIGCONT : SIGKILL);
}

/*
 * A process that killed one worker may have killed others too. Those are dead only once they get to run, so their reports up to
 * now prove nothing: each worker is asked whether it lives before it gets another job.
 */
static void give_up(struct runner *r, struct worker *lost) {
    bool is_known = lost->state == WORKER_GIVEN_UP;
    worker_kill(lost);
    for (struct worker *w = is_known ? NULL : r->workers; w; w = w->next) {
        if (w->state == WORKER_IDLE) question(w);
        else w->is_suspect = true;
    }
}

/* A command may kill its own worker to get away from it. The channel then ends the processes that are left. */
static void lose(struct runner *r, struct worker *w, int status) {
    struct channel *c = w->channel;
    /* If a dismissed worker was killed before it could end, others may have been killed with it. */
    bool has_left = w->state == WORKER_DISMISSED && WIFEXITED(status);
    if (!has_left) give_up(r, w);
    forget(r, w);
    if (c) w->events->on_loss(r, c, w->slot->orphans_since);
}

static void take_back(struct runner *r, struct worker *w) {
    struct channel *c = w->channel;
    w->channel = NULL;
    w->slot->channel = 0;
    if (w->state == WORKER_BUSY && w->is_suspect) question(w);
    else if (w->state == WORKER_BUSY) w->state = WORKER_IDLE;
    if (c) w->events->on_empty(r, c, w->slot->orphans_since);
}

static void on_report(struct runner *r, struct source *s, uint32_t events) {
    (void)events;
    struct worker *w = s->owner;
    static uint8_t result[RESULT_MAX];
    struct worker_report report;
    enum report_state state;
    while ((state = report_receive(s->fd, &report, result)) == REPORT_TAKEN) {
        if (report.what & REPORT_ENDED && w->channel) w->events->on_end(r, w->channel, &report, result);
        if (report.what & REPORT_EMPTY) {
            take_back(r, w);
            return; /* nothing more comes before its next job */
        }
    }
    if (state == REPORT_NOT_YET) return;
    watch(r, s, 0);
    give_up(r, w); /* it will be reaped as lost */
}

/*
 * A new worker must not keep any descriptor of PID 1 open, or a pipe would never reach its end. gVisor of 2022 has no close_range, and
 * closing thousands of numbers one by one takes it most of a second, so the loop ends at the highest that was in use.
 */
static void close_all_but(const struct runner *r, int first, int last) {
    if (syscall(SYS_close_range, 3u, (unsigned)first - 1, 0) == 0 && syscall(SYS_close_range, (unsigned)last + 1, ~0u, 0) == 0) return;
    for (int fd = 3; fd <= r->highest_fd || fd < last + 8; fd++)
        if (fd < first || fd > last) close(fd);
}

static _Noreturn void begin_work(const struct runner *r, int socket, struct worker_slot *slot) {
    struct worker_place place = {.control = fcntl(socket, F_DUPFD_CLOEXEC, 3), .shared = r->shared, .slot = slot};
    place.shared_fd = place.control + 1;
    if (r->shared_fd != place.shared_fd) dup3(r->shared_fd, place.shared_fd, O_CLOEXEC);
    close_all_but(r, place.control, place.shared_fd);
    worker_main(&place);
}

static struct worker *start_worker(struct runner *r) {
    struct worker *w = calloc(1, sizeof *w);
    int pair[2];
    if (!w) return NULL;
    w->slot = free_slot(r);
    if (!w->slot || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        free(w);
        return NULL;
    }
    *w->slot = (struct worker_slot){0};
    pid_t pid = may_use_fd(r, pair[1]) ? fork() : -1;
    if (pid == 0) begin_work(r, pair[1], w->slot);
    int error = errno;
    close(pair[1]);
    if (pid < 0) {
        if (error == EAGAIN) r->refused_forks++;
        close(pair[0]);
        free(w);
        return NULL;
    }
    w->pid = w->slot->supervisor = pid;
    w->control = (struct source){.on_event = on_report, .owner = w, .fd = pair[0]};
    w->next = r->workers;
    r->workers = w;
    watch(r, &w->control, EPOLLIN);
    return w;
}

/* A worker that has begun with file operations goes on with them. Another one turns to them even if no process can be forked any more. */
static struct worker *idle_worker(struct runner *r, enum job_kind kind) {
    struct worker *other = NULL;
    for (struct worker *w = r->workers; w; w = w->next) {
        if (w->state != WORKER_IDLE) continue;
        if (w->does_files == (kind == JOB_FILE)) return w;
        if (kind == JOB_FILE) other = w;
    }
    return other ? other : start_worker(r);
}

int pool_jobs(const struct runner *r, enum job_kind kind) {
    int count = 0;
    for (const struct worker *w = r->workers; w; w = w->next) count += w->channel && w->job_kind == kind;
    return count;
}

void worker_continue(struct worker *w) { kill(w->pid, SIGCONT); }

void worker_kill(struct worker *w) {
    w->state = WORKER_GIVEN_UP;
    if (!w->is_reaped) kill(w->pid, SIGKILL);
}

struct worker *pool_start_job(struct runner *r, struct channel *c, const struct job *job, const struct job_events *events) {
    for (int i = 0; i < ATTEMPTS; i++) {
        struct worker *w = idle_worker(r, job->kind);
        if (!w) return NULL;
        w->state = WORKER_BUSY;
        w->does_files = job->kind == JOB_FILE;
        w->slot->cancelled = 0;
        if (job_send(w->control.fd, job)) {
            w->channel = c;
            w->slot->channel = job->channel;
            w->job_kind = job->kind;
            w->events = events;
            worker_continue(w); /* a command may have stopped it, because they run as the same user */
            return w;
        }
        give_up(r, w);
    }
    return NULL;
}

void pool_keep_ready(struct runner *r) {
    int idle = 0, ready = 0; /* for commands */
    for (struct worker *w = r->workers; w; w = w->next) {
        idle += w->state == WORKER_IDLE;
        ready += w->state == WORKER_IDLE && !w->does_files;
    }
    for (; ready < READY_WORKERS && start_worker(r); ready++) idle++;
    for (struct worker *w = r->workers, *next; w && idle > IDLE_WORKERS_MAX; w = next) {
        next = w->next;
        if (w->state != WORKER_IDLE || (!w->does_files && ready <= READY_WORKERS)) continue;
        close_source(r, &w->control); /* it ends by itself and is reaped */
        w->state = WORKER_DISMISSED;
        ready -= !w->does_files;
        idle--;
    }
}

void pool_reap(struct runner *r) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        struct worker *w = find_worker(r, pid);
        if (!w) continue;
        if (WIFSTOPPED(status)) {
            worker_continue(w);
            continue;
        }
        w->is_reaped = true;
        /* Reports from before its end still count. */
        if (w->control.fd >= 0) on_report(r, &w->control, 0);
        lose(r, w, status);
    }
}
