/* The runner's side of the workers: forked ahead of time, handed one job each, replaced when they die. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runner.h"
#include "tree.h"

#define READY_WORKERS 2
#define IDLE_WORKERS_MAX 6
#define SLOTS 1024
#define ORPHAN_PATIENCE_MS 5000 /* a killed process is gone once it gets to run, which a busy machine puts off */
#define ATTEMPTS 64 /* a command may have killed every idle worker, and none has been reaped yet */

static struct worker *find_worker(struct runner *r, pid_t pid) {
    for (struct worker *w = r->workers; w; w = w->next)
        if (w->pid == pid) return w;
    return NULL;
}

/* For orphans_kill, which knows nothing of runners. */
static struct runner *sweeping;
static int is_worker(pid_t pid) { return find_worker(sweeping, pid) != NULL; }

static struct worker_slot *free_slot(struct runner *r) {
    for (int i = 0; i < SLOTS; i++) {
        bool taken = false;
        for (struct worker *w = r->workers; w && !taken; w = w->next) taken = w->slot == &r->slots[i];
        if (!taken) return &r->slots[i];
    }
    errno = EAGAIN;
    return NULL;
}

static void forget(struct runner *r, struct worker *w) {
    struct worker **at = &r->workers;
    while (*at != w) at = &(*at)->next;
    *at = w->next;
    close_source(r, &w->control);
    /* The batch of events at hand may still name it. */
    w->next = r->retired_workers;
    r->retired_workers = w;
}

void pool_free_retired(struct runner *r) {
    while (r->retired_workers) {
        struct worker *w = r->retired_workers;
        r->retired_workers = w->next;
        free(w);
    }
}

/* Those that may be of the worker's last command. */
static void kill_orphans(struct runner *r, const struct worker *w, struct channel *c) {
    uint64_t give_up_ms = now_ms() + ORPHAN_PATIENCE_MS;
    sweeping = r;
    while (orphans_kill(is_worker, w->slot->orphans_since) > 0) {
        if (now_ms() >= give_up_ms) {
            c->flags |= EXIT_TREE_LEFT;
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static size_t kill_all_commands(struct runner *r) {
    sweeping = r;
    size_t alive = orphans_kill(is_worker, 0);
    for (struct worker *w = r->workers; w; w = w->next)
        if (w->channel && w->channel->is_command) alive += tree_kill(w->pid);
    return alive;
}

void pool_end_commands(struct runner *r) {
    uint64_t give_up_ms = now_ms() + ORPHAN_PATIENCE_MS;
    while (kill_all_commands(r) > 0 && now_ms() < give_up_ms) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Its answer makes it idle. A process whose SIGKILL is on its way says nothing any more. */
static void question(struct worker *w) {
    static const struct job_header header = {.kind = JOB_ANSWER};
    w->state = WORKER_BUSY;
    w->is_suspect = false;
    bool is_asked = send(w->control.fd, &header, sizeof header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
    if (!w->reaped) kill(w->pid, is_asked ? SIGCONT : SIGKILL);
}

/*
 * Whoever killed one worker may have killed others too, and they are not dead before they get to run; what they have said
 * by now proves nothing. So each is asked whether it lives before it gets another job.
 */
static void give_up(struct runner *r, struct worker *lost) {
    bool is_known = lost->state == WORKER_ENDING;
    worker_kill(lost);
    for (struct worker *w = is_known ? NULL : r->workers; w; w = w->next) {
        if (w->state == WORKER_IDLE) question(w);
        else w->is_suspect = true;
    }
}

/* Its children fell to PID 1 when it died. Nobody may kill a supervisor to get away from it, so they go with it. */
static void lose(struct runner *r, struct worker *w) {
    struct channel *c = w->channel;
    give_up(r, w);
    forget(r, w);
    if (!c) return;
    c->worker = NULL;
    if (c->is_command) kill_orphans(r, w, c);
    if (!c->ended) channel_ended(r, c, &(struct worker_report){.what = REPORT_ENDED, .kind = EXIT_LOST, .code = SIGKILL}, NULL);
    channel_tree_empty(r, c);
}

static void on_report(struct runner *r, struct source *s, uint32_t events) {
    (void)events;
    struct worker *w = s->owner;
    static uint8_t result[RESULT_MAX];
    for (;;) {
        struct worker_report report;
        struct iovec parts[2] = {{&report, sizeof report}, {result, sizeof result}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t n = recvmsg(s->fd, &message, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n < (ssize_t)sizeof report || report.result_length != (size_t)n - sizeof report) {
            watch(r, s, 0);
            give_up(r, w); /* it will be reaped as lost */
            return;
        }
        struct channel *c = w->channel;
        if (report.what & REPORT_ENDED && c) channel_ended(r, c, &report, result);
        if (report.what & REPORT_EMPTY) {
            if (c && (c->ends_tree || c->kill != KILL_NONE) && w->slot->orphans_since) kill_orphans(r, w, c);
            w->channel = NULL;
            if (w->state == WORKER_BUSY && w->is_suspect) question(w);
            else if (w->state == WORKER_BUSY) w->state = WORKER_IDLE;
            if (c) {
                c->worker = NULL;
                channel_tree_empty(r, c);
            }
            return; /* nothing more comes before its next job */
        }
    }
}

/*
 * In the forked worker: nothing of the runner's may stay open, or a pipe would never reach its end. gVisor of 2022 has no
 * close_range, and closing thousands of numbers one by one takes it most of a second, so the loop ends at the highest.
 */
static void close_all_but(const struct runner *r, int keep) {
    if (syscall(SYS_close_range, 3u, (unsigned)keep - 1, 0) == 0 && syscall(SYS_close_range, (unsigned)keep + 1, ~0u, 0) == 0) return;
    for (int fd = 3; fd <= r->highest_fd || fd < keep + 8; fd++)
        if (fd != keep) close(fd);
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
    if (pid == 0) {
        int control = fcntl(pair[1], F_DUPFD_CLOEXEC, 3);
        close_all_but(r, control);
        worker_main(control, w->slot);
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        free(w);
        return NULL;
    }
    w->pid = pid;
    w->control = (struct source){.on_event = on_report, .owner = w, .fd = pair[0]};
    w->next = r->workers;
    r->workers = w;
    watch(r, &w->control, EPOLLIN);
    return w;
}

static struct worker *idle_worker(struct runner *r) {
    for (struct worker *w = r->workers; w; w = w->next)
        if (w->state == WORKER_IDLE) return w;
    return start_worker(r);
}

static int memory_file(const struct frame *request) {
    int fd = (int)syscall(SYS_memfd_create, "request", 1u /* MFD_CLOEXEC */);
    if (fd >= 0 && write_all(fd, request->payload, request->length) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool send_job(struct worker *w, const struct frame *request, const int *fds, int fd_count) {
    int sent[4], count = 0, memory = -1;
    if (request->length > PACKET_MAX) {
        memory = memory_file(request);
        if (memory < 0) return false;
        sent[count++] = memory;
    }
    for (int i = 0; i < fd_count; i++) sent[count++] = fds[i];
    struct job_header header = {
        .kind = request->type == FRAME_SPAWN ? JOB_SPAWN : JOB_FILE, .length = request->length, .in_memory_file = memory >= 0};
    struct iovec parts[2] = {{&header, sizeof header}, {(void *)(uintptr_t)request->payload, memory >= 0 ? 0 : request->length}};
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof sent)];
    } ancillary = {0};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (count > 0) {
        message.msg_control = &ancillary;
        message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
        memcpy(CMSG_DATA(c), sent, (size_t)count * sizeof(int));
    }
    ssize_t n = sendmsg(w->control.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (memory >= 0) close(memory);
    return n >= 0;
}

int pool_file_workers(const struct runner *r) {
    int count = 0;
    for (const struct worker *w = r->workers; w; w = w->next) count += w->channel && !w->channel->is_command;
    return count;
}

void worker_continue(struct worker *w) { kill(w->pid, SIGCONT); }

void worker_kill(struct worker *w) {
    w->state = WORKER_ENDING;
    if (!w->reaped) kill(w->pid, SIGKILL);
}

bool pool_dispatch(struct runner *r, struct channel *c, const struct frame *request, const int *fds, int fd_count) {
    for (int i = 0; i < ATTEMPTS; i++) {
        struct worker *w = idle_worker(r);
        if (!w) return false;
        w->state = WORKER_BUSY;
        w->slot->cancelled = 0;
        if (send_job(w, request, fds, fd_count)) {
            w->channel = c;
            c->worker = w;
            worker_continue(w); /* a command may have stopped it: they run as the same user */
            return true;
        }
        give_up(r, w);
    }
    return false;
}

void pool_keep_ready(struct runner *r) {
    int idle = 0;
    for (struct worker *w = r->workers; w; w = w->next) idle += w->state == WORKER_IDLE;
    while (idle < READY_WORKERS && start_worker(r)) idle++;
    for (struct worker *w = r->workers, *next; w && idle > IDLE_WORKERS_MAX; w = next) {
        next = w->next;
        if (w->state != WORKER_IDLE) continue;
        close_source(r, &w->control); /* it ends by itself and is reaped */
        w->state = WORKER_ENDING;
        idle--;
    }
}

void pool_reap(struct runner *r) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        struct worker *w = find_worker(r, pid);
        if (!w) continue;
        if (WIFSTOPPED(status)) { /* by a command, which runs as the same user */
            worker_continue(w);
            continue;
        }
        w->reaped = true;
        /* What it said before it ended still counts. */
        if (w->control.fd >= 0) on_report(r, &w->control, 0);
        lose(r, w);
    }
}
