#define _GNU_SOURCE
#include "channel-streams.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "runner.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

static void hand_over(struct job_streams *streams, int fd) { streams->fds[streams->count++] = fd; }

static bool open_pipe(struct runner *r, int ends[2]) {
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    if (may_use_fd(r, ends[0] > ends[1] ? ends[0] : ends[1])) return true;
    close(ends[0]);
    close(ends[1]);
    return false;
}

/* Only PID 1's end is non-blocking. The command expects an ordinary pipe. */
static void keep(struct source *s, int fd) {
    s->fd = fd;
    fcntl(fd, F_SETFL, O_NONBLOCK);
}

static bool open_input(struct runner *r, struct channel *c, struct job_streams *theirs) {
    int ends[2];
    if (!open_pipe(r, ends)) return false;
    keep(&c->in.source, ends[1]);
    hand_over(theirs, ends[0]);
    return true;
}

static bool open_output(struct runner *r, struct channel_output *o, struct job_streams *theirs) {
    int ends[2];
    if (!open_pipe(r, ends)) return false;
    keep(&o->source, ends[0]);
    hand_over(theirs, ends[1]);
    return true;
}

static bool open_pipes(struct runner *r, struct channel *c, uint8_t flags, struct job_streams *theirs) {
    if (!(flags & SPAWN_NO_STDIN) && !open_input(r, c, theirs)) return false;
    if (!open_output(r, &c->out, theirs)) return false;
    return flags & SPAWN_MERGE || open_output(r, &c->err, theirs);
}

/* Linux has TIOCGPTPEER since 4.13. Where it is missing, the terminal is opened by its name. */
static int open_terminal_peer(int master) {
    int peer = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (peer >= 0) return peer;
    char name[64];
    unsigned number;
    if (ioctl(master, TIOCGPTN, &number) != 0) return -1;
    snprintf(name, sizeof name, "/dev/pts/%u", number);
    return open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static bool open_terminal(struct runner *r, struct channel *c, const struct spawn_request *request, struct job_streams *theirs) {
    int unlocked = 0, peer = -1;
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (master < 0) return false;
    struct winsize size = {.ws_row = request->rows, .ws_col = request->cols};
    bool is_ready = may_use_fd(r, master + 1) && ioctl(master, TIOCSPTLCK, &unlocked) == 0 && ioctl(master, TIOCSWINSZ, &size) == 0;
    if (is_ready) peer = open_terminal_peer(master);
    if (peer < 0) {
        close(master);
        return false;
    }
    c->terminal = TERMINAL_IN_USE;
    c->out.source.fd = c->in.source.fd = master;
    hand_over(theirs, peer);
    return true;
}

void streams_close(const struct job_streams *streams) {
    for (int i = 0; i < streams->count; i++) close(streams->fds[i]);
}

bool streams_for_command(struct runner *r, struct channel *c, const struct spawn_request *request, struct job_streams *out) {
    *out = (struct job_streams){.count = 0};
    if (request->flags & SPAWN_PTY) return open_terminal(r, c, request, out);
    if (open_pipes(r, c, request->flags, out)) return true;
    int error = errno;
    streams_close(out);
    out->count = 0;
    errno = error;
    return false;
}

bool streams_for_file(struct runner *r, struct channel *c, const struct file_request *request, struct job_streams *out) {
    *out = (struct job_streams){.count = 0};
    if (file_has_output(request)) return open_output(r, &c->out, out);
    return !file_has_input(request) || open_input(r, c, out);
}
