#define _GNU_SOURCE
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "bridge-socket.h"
#include "bridge.h"
#include "causes.h"
#include "channel.h"
#include "network.h"
#include "pool.h"
#include "runner.h"

#define EVENTS 64
#define IDLE_TRIM_MS 1000
/* The time for the first connection: a busy engine may need more of it than a short lease lasts. */
#define FIRST_HOST_MS 30000

/* Only a signal from outside the PID namespace has no sender, and only the engine can send that. Signals of commands are ignored. */
static bool comes_from_engine(const struct signalfd_siginfo *info) {
    return info->ssi_pid == 0 && (info->ssi_code == SI_USER || info->ssi_code == SI_KERNEL);
}

static void on_signal(struct runner *r, struct source *s, uint32_t events) {
    (void)events;
    struct signalfd_siginfo info;
    while (read(s->fd, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD && comes_from_engine(&info)) exit(0);
    pool_reap(r);
}

static bool open_signals(struct runner *r) {
    /* Linux protects PID 1 from signals of its own container. gVisor does not, so all of them are blocked. */
    sigset_t all, set;
    memset(&all, 0xff, sizeof all); /* sigfillset would leave out those that libc uses for threads */
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGQUIT);
    sigaddset(&set, SIGHUP);
    /* Ignored signals are inherited. An engine that was started by nohup ignores SIGHUP, and so would every command. */
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &all, NULL) != 0) return false;
    r->signals = (struct source){.on_event = on_signal, .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
    return r->signals.fd >= 0;
}

static int open_null(int flags) {
    struct stat st;
    int fd = open("/dev/null", flags | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) return fd;
    if (fd >= 0) close(fd);
    errno = ENODEV;
    return -1;
}

/* The standard streams belong to the engine, so they become /dev/null here. Commands without input inherit the first one. */
static bool leave_standard_streams(void) {
    int in = open_null(O_RDONLY), out = open_null(O_RDWR);
    if (in < 0 || out < 0) return false;
    dup2(in, 0);
    dup2(out, 1);
    dup2(out, 2);
    if (in > 2) close(in);
    if (out > 2) close(out);
    return true;
}

/* The host has attached to these before the start, because an exec of `connect` takes as long as the start itself. */
static void take_standard_streams(struct runner *r) {
    int streams[2] = {fcntl(0, F_DUPFD_CLOEXEC, 3), fcntl(1, F_DUPFD_CLOEXEC, 3)};
    if (streams[0] >= 0 && streams[1] >= 0 && bridges_adopt(r, streams, FIRST_HOST_MS)) return;
    for (int i = 0; i < 2; i++)
        if (streams[i] >= 0) close(streams[i]);
}

static bool set_up(struct runner *r, bool takes_bridges) {
    umask(022);
    if (chdir("/") != 0) return false;
    struct rlimit limit;
    r->fd_limit = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < INT_MAX ? (int)limit.rlim_cur : INT_MAX;
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!pool_share_memory(r)) return false;
    clock_gettime(CLOCK_REALTIME_COARSE, &r->shared->session_start);
    r->listener = (struct source){.on_event = bridges_accept, .fd = takes_bridges ? listen_for_bridges() : -1};
    if (r->epoll_fd < 0 || (takes_bridges && r->listener.fd < 0) || !open_signals(r)) return false;
    if (getrandom(&r->boot_id, sizeof r->boot_id, 0) != sizeof r->boot_id) return false;
    watch(r, &r->signals, EPOLLIN);
    if (takes_bridges) watch(r, &r->listener, EPOLLIN);
    return true;
}

static bool lease_is_over(struct runner *r, uint64_t now) {
    if (r->host || !r->lease_ms) return false;
    uint64_t patience = r->was_connected || r->lease_ms > FIRST_HOST_MS ? r->lease_ms : FIRST_HOST_MS;
    if (now - r->alone_since_ms >= patience) return true;
    wake_at(r, r->alone_since_ms + patience);
    return false;
}

/* After a burst of data these two buffers can be megabytes large with little in them. */
static bool is_loose(const struct runner *r) {
    return buffer_is_loose(&r->link.kept) || (r->host && buffer_is_loose(&r->host->input));
}

static void tighten_buffers(struct runner *r) {
    if (buffer_is_loose(&r->link.kept)) buffer_tighten(&r->link.kept);
    if (r->host && buffer_is_loose(&r->host->input)) buffer_tighten(&r->host->input);
}

static int wait_ms(const struct runner *r) {
    if (r->next_deadline_ms == UINT64_MAX) return is_loose(r) ? IDLE_TRIM_MS : -1;
    uint64_t now = now_ms();
    if (r->next_deadline_ms <= now) return 0;
    uint64_t wait = r->next_deadline_ms - now, longest = is_loose(r) ? IDLE_TRIM_MS : INT_MAX;
    return (int)(wait > longest ? longest : wait);
}

/* Beside PID 1 the end of a runner alone does not end its commands. */
static void look_at_uncounted(struct runner *r, uint64_t now) {
    if (pool_jobs(r, JOB_SPAWN) == 0) {
        uncounted_rest(&r->uncounted);
        return;
    }
    int excess = uncounted_look(&r->uncounted, now);
    if (excess && getpid() != 1) pool_end_commands(r);
    if (excess) exit(excess);
    wake_at(r, r->uncounted.look_ms);
}

static void turn(struct runner *r) {
    struct epoll_event events[EVENTS];
    int n = epoll_wait(r->epoll_fd, events, EVENTS, wait_ms(r));
    if (n == 0) tighten_buffers(r);
    for (int i = 0; i < n; i++) {
        struct source *s = events[i].data.ptr;
        if (s->fd >= 0) s->on_event(r, s, events[i].events); /* an earlier event of this batch may have closed it */
    }
    uint64_t now = now_ms();
    if (now >= r->next_deadline_ms) {
        r->next_deadline_ms = UINT64_MAX;
        channels_tick(r);
        network_tick(r);
        bridges_tick(r, now);
        if (lease_is_over(r, now)) exit(LEASE_OVER_STATUS);
    }
    look_at_uncounted(r, now);
    channels_start_queued(r);
    channels_resume_output(r);
    network_resume(r);
    host_flush(r);
    free_what_is_over(r);
    pool_keep_ready(r);
}

int serve(const uint8_t token_hash[32], uint64_t lease_ms, bool has_stream, bool takes_bridges) {
    struct runner *r = calloc(1, sizeof *r);
    if (!r) return 1;
    memcpy(r->token_hash, token_hash, 32);
    r->lease_ms = lease_ms;
    r->next_deadline_ms = UINT64_MAX;
    r->queue_end = &r->queue_first;
    if (!set_up(r, takes_bridges)) {
        fprintf(stderr, "brig: the runner cannot start: %s\n", strerror(errno));
        return 1;
    }
    r->watched = causes_open(r);
    uncounted_open(&r->uncounted);
    if (has_stream) take_standard_streams(r);
    if (!leave_standard_streams()) return 1;
    r->alone_since_ms = now_ms();
    if (lease_ms) wake_at(r, r->alone_since_ms + lease_ms);
    pool_keep_ready(r);
    for (;;) turn(r);
}
