/* PID 1: one event loop over signals, bridges, workers and the streams of commands. */
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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "connect.h"
#include "receipt.h"
#include "runner.h"

#define EVENTS 64
#define IDLE_TRIM_MS 1000
#define FIRST_HOST_MS 30000 /* for the first connection, which a busy engine may take longer to make than a short lease lasts */
#define RESERVED_FDS 24
#define SLOT_BYTES (1024 * sizeof(struct worker_slot))

uint64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t now_ms(void) { return now_us() / 1000; }

void wake_at(struct runner *r, uint64_t when_ms) {
    if (when_ms < r->next_deadline_ms) r->next_deadline_ms = when_ms;
}

/* A source that waits for nothing leaves the set: a hang-up would be reported for it all the same, for ever. */
void watch(struct runner *r, struct source *s, uint32_t events) {
    if (s->fd < 0 || s->armed == events) return;
    note_fd(r, s->fd);
    struct epoll_event event = {.events = events, .data.ptr = s};
    int operation = s->armed == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    if (epoll_ctl(r->epoll_fd, operation, s->fd, &event) == 0) s->armed = events;
}

void note_fd(struct runner *r, int fd) {
    if (fd > r->highest_fd) r->highest_fd = fd;
}

bool may_use_fd(struct runner *r, int fd) {
    note_fd(r, fd);
    if (fd < r->fd_limit - RESERVED_FDS) return true;
    errno = EMFILE;
    return false;
}

void close_source(struct runner *r, struct source *s) {
    if (s->fd < 0) return;
    watch(r, s, 0);
    close(s->fd);
    s->fd = -1;
}

/* A signal from a command in here is ignored; one from outside the PID namespace, which has no sender here, is the engine's. */
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

static void on_listener(struct runner *r, struct source *s, uint32_t events) {
    (void)s;
    (void)events;
    bridges_accept(r);
}

static bool open_signals(struct runner *r) {
    /* All are blocked, or what a command sends here would end the runner where PID 1 has no protection of its own: gVisor. */
    sigset_t all, set;
    memset(&all, 0xff, sizeof all); /* sigfillset leaves out those that libc has a use for, in programs with threads */
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGQUIT);
    sigaddset(&set, SIGHUP);
    /* What the engine ignores, as one started by nohup does, would else be ignored by every command. */
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

/* Standard streams are the engine's pipes: nothing in here may write to them. A command without input is handed the first. */
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

/* A host that attached before the start speaks here at once. An exec of `connect` would cost it as much as the start itself. */
static void take_standard_streams(struct runner *r) {
    int streams[2] = {fcntl(0, F_DUPFD_CLOEXEC, 3), fcntl(1, F_DUPFD_CLOEXEC, 3)};
    if (streams[0] >= 0 && streams[1] >= 0 && bridges_adopt(r, streams, FIRST_HOST_MS)) return;
    for (int i = 0; i < 2; i++)
        if (streams[i] >= 0) close(streams[i]);
}

static bool set_up(struct runner *r) {
    prctl(PR_SET_DUMPABLE, 0);
    receipt_note_start();
    umask(022);
    if (chdir("/") != 0) return false;
    struct rlimit limit;
    r->fd_limit = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < INT_MAX ? (int)limit.rlim_cur : INT_MAX;
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    r->slots = mmap(NULL, SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    r->listener = (struct source){.on_event = on_listener, .fd = listen_for_bridges()};
    if (r->epoll_fd < 0 || r->slots == MAP_FAILED || r->listener.fd < 0 || !open_signals(r)) return false;
    if (getrandom(&r->boot_id, sizeof r->boot_id, 0) != sizeof r->boot_id) return false;
    watch(r, &r->signals, EPOLLIN);
    watch(r, &r->listener, EPOLLIN);
    return true;
}

static bool lease_is_over(struct runner *r, uint64_t now) {
    if (r->host || !r->lease_ms) return false;
    uint64_t patience = r->was_connected || r->lease_ms > FIRST_HOST_MS ? r->lease_ms : FIRST_HOST_MS;
    if (now - r->alone_since_ms >= patience) return true;
    wake_at(r, r->alone_since_ms + patience);
    return false;
}

/* The largest buffers: a burst in either direction leaves megabytes in them. */
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

static void turn(struct runner *r) {
    struct epoll_event events[EVENTS];
    int n = epoll_wait(r->epoll_fd, events, EVENTS, wait_ms(r));
    if (n == 0) tighten_buffers(r);
    for (int i = 0; i < n; i++) {
        struct source *s = events[i].data.ptr;
        if (s->fd >= 0) s->on_event(r, s, events[i].events); /* closed by an earlier event of this batch otherwise */
    }
    uint64_t now = now_ms();
    if (now >= r->next_deadline_ms) {
        r->next_deadline_ms = UINT64_MAX;
        channels_tick(r, now);
        bridges_tick(r, now);
        if (lease_is_over(r, now)) exit(0);
    }
    channels_start_queued(r);
    channels_resume_output(r);
    host_flush(r);
    channels_free_retired(r);
    pool_free_retired(r);
    pool_keep_ready(r);
}

int serve(const uint8_t token_hash[32], uint64_t lease_ms, bool has_stream) {
    struct runner *r = calloc(1, sizeof *r);
    if (!r) return 1;
    memcpy(r->token_hash, token_hash, 32);
    r->lease_ms = lease_ms;
    r->next_deadline_ms = UINT64_MAX;
    if (!set_up(r)) {
        fprintf(stderr, "brig: the runner cannot start: %s\n", strerror(errno));
        return 1;
    }
    if (has_stream) take_standard_streams(r);
    if (!leave_standard_streams()) return 1;
    r->alone_since_ms = now_ms();
    if (lease_ms) wake_at(r, r->alone_since_ms + lease_ms);
    pool_keep_ready(r);
    for (;;) turn(r);
}
