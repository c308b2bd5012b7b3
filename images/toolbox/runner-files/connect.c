#define _GNU_SOURCE
#include "connect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bridge-socket.h"

/* The engine may report that the container has started before PID 1 listens. */
static int connect_patiently(int fd, const struct sockaddr_un *address, socklen_t length) {
    for (int i = 0; i < 5000; i++) {
        if (connect(fd, (const struct sockaddr *)address, length) == 0) return 0;
        if (errno != ECONNREFUSED && errno != EINTR && errno != EAGAIN) return -1;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return -1;
}

/*
 * The pid of whoever answers on the socket, or -1. PID 1 answers with one byte, to which the kernel adds its sender. SO_PEERCRED
 * would be enough on Linux, but on gVisor it names the process that asks.
 */
static pid_t greeted_by(int fd) {
    int on = 1;
    char byte;
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(struct ucred))];
    } ancillary;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &ancillary, .msg_controllen = sizeof ancillary};
    /* The option must be set before PID 1 sends its answer, so it answers only after this question. */
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 || send(fd, "?", 1, MSG_NOSIGNAL) != 1) return -1;
    ssize_t n;
    do n = recvmsg(fd, &message, 0);
    while (n < 0 && errno == EINTR);
    struct cmsghdr *c = n == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!c || c->cmsg_type != SCM_CREDENTIALS) return -1;
    struct ucred sender;
    memcpy(&sender, CMSG_DATA(c), sizeof sender);
    return sender.pid;
}

static int send_streams(int fd) {
    int streams[2] = {0, 1};
    char byte = 1;
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof streams)];
    } ancillary = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &ancillary, .msg_controllen = sizeof ancillary};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof streams);
    memcpy(CMSG_DATA(c), streams, sizeof streams);
    return sendmsg(fd, &message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

int run_bridge(void) {
    struct sockaddr_un address;
    socklen_t length = bridge_address(&address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect_patiently(fd, &address, length) != 0) {
        fprintf(stderr, "brig: the runner does not answer: %s\n", strerror(errno));
        return 1;
    }
    pid_t peer = greeted_by(fd);
    if (peer < 0) {
        fprintf(stderr, "brig: the runner takes no connection now\n"); /* all places are taken, or it is ending */
        return 1;
    }
    if (peer != 1) {
        fprintf(stderr, "brig: the runner's socket is held by process %d, not by PID 1\n", (int)peer);
        return 1;
    }
    if (send_streams(fd) != 0) {
        fprintf(stderr, "brig: cannot hand over the stream: %s\n", strerror(errno));
        return 1;
    }
    /* From here PID 1 speaks on these streams itself; this process only keeps the exec alive until it is done. */
    close(0);
    close(1);
    char byte;
    while (read(fd, &byte, 1) < 0 && errno == EINTR) continue;
    return 0;
}
