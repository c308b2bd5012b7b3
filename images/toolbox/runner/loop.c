#include "loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "runner.h"

/* For MAX_BRIDGES connections of a host, which have three each, and the first of them two. */
#define RESERVED_FDS 23

uint64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t now_ms(void) { return now_us() / 1000; }

void wake_at(struct runner *r, uint64_t when_ms) {
    if (when_ms < r->next_deadline_ms) r->next_deadline_ms = when_ms;
}

/* A source that waits for nothing leaves the set, because epoll would report a hang-up of it over and over. */
void watch(struct runner *r, struct source *s, uint32_t events) {
    if (s->fd < 0 || s->armed == events) return;
    note_fd(r, s->fd);
    struct epoll_event event = {.events = events, .data.ptr = s};
    int operation = s->armed == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    if (epoll_ctl(r->epoll_fd, operation, s->fd, &event) == 0) s->armed = events;
}

void close_source(struct runner *r, struct source *s) {
    if (s->fd < 0) return;
    watch(r, s, 0);
    close(s->fd);
    s->fd = -1;
}

void free_later(struct runner *r, struct later *what) {
    what->next = r->over;
    r->over = what;
}

void free_what_is_over(struct runner *r) {
    while (r->over) {
        struct later *what = r->over;
        r->over = what->next;
        free(what);
    }
}

bool is_open(const struct source *s) { return s->fd >= 0; }

void note_fd(struct runner *r, int fd) {
    if (fd > r->highest_fd) r->highest_fd = fd;
}

bool may_use_fd(struct runner *r, int fd) {
    note_fd(r, fd);
    if (fd < r->fd_limit - RESERVED_FDS) return true;
    errno = EMFILE;
    return false;
}
