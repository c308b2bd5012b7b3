#define _GNU_SOURCE
#include "job.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "io.h"

/* The streams, and before them the memory file if there is one. */
#define MOST_FDS (JOB_STREAMS + 1)

union descriptors {
    struct cmsghdr align;
    char space[CMSG_SPACE(MOST_FDS * sizeof(int))];
};

/* ---- PID 1's side ------------------------------------------------------------------------------------------------ */

static int memory_file(const struct job *job) {
    int fd = (int)syscall(SYS_memfd_create, "request", 1u /* MFD_CLOEXEC */);
    if (fd >= 0 && write_all(fd, job->payload, job->length) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void attach_descriptors(struct msghdr *message, union descriptors *ancillary, const int *fds, int count) {
    size_t size = (size_t)count * sizeof(int);
    if (count == 0) return;
    message->msg_control = ancillary;
    message->msg_controllen = CMSG_SPACE(size);
    struct cmsghdr *c = CMSG_FIRSTHDR(message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(c), fds, size);
}

bool job_send(int control, const struct job *job) {
    int fds[MOST_FDS], count = 0, memory = -1;
    if (job->length > PACKET_MAX) {
        memory = memory_file(job);
        if (memory < 0) return false;
        fds[count++] = memory;
    }
    for (int i = 0; i < job->fd_count; i++) fds[count++] = job->fds[i];
    struct job_header header = {.kind = job->kind, .length = job->length, .in_memory_file = memory >= 0};
    struct iovec parts[2] = {{&header, sizeof header}, {(void *)(uintptr_t)job->payload, memory >= 0 ? 0 : job->length}};
    union descriptors ancillary = {0};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    attach_descriptors(&message, &ancillary, fds, count);
    ssize_t n = sendmsg(control, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (memory >= 0) close(memory);
    return n >= 0;
}

enum report_state report_receive(int control, struct worker_report *report, uint8_t *result) {
    struct iovec parts[2] = {{report, sizeof *report}, {result, RESULT_MAX}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t n;
    do n = recvmsg(control, &message, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN) return REPORT_NOT_YET;
    bool is_whole = n >= (ssize_t)sizeof *report && report->result_length == (size_t)n - sizeof *report;
    return is_whole ? REPORT_TAKEN : REPORT_IMPOSSIBLE;
}

/* ---- the worker's side ------------------------------------------------------------------------------------------- */

uint32_t job_await(int control) {
    struct job_header header;
    ssize_t n;
    do n = recv(control, &header, sizeof header, MSG_PEEK);
    while (n < 0 && errno == EINTR);
    return n < (ssize_t)sizeof header ? 0 : header.kind;
}

bool job_receive(int control, uint8_t *packet, struct received_job *job) {
    struct iovec parts[2] = {{&job->header, sizeof job->header}, {packet, PACKET_MAX}};
    union descriptors ancillary;
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = &ancillary, .msg_controllen = sizeof ancillary};
    ssize_t n;
    do n = recvmsg(control, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < (ssize_t)sizeof job->header) return false;

    int fds[MOST_FDS] = {-1, -1, -1, -1}, next = 0;
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    if (c && c->cmsg_type == SCM_RIGHTS) memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
    job->payload = packet;
    job->is_mapped = job->header.in_memory_file != 0;
    if (job->is_mapped) {
        int memory = fds[next++];
        job->payload = mmap(NULL, job->header.length, PROT_READ, MAP_PRIVATE, memory, 0);
        close(memory);
    }
    for (int i = 0; i < JOB_STREAMS; i++) job->fds[i] = fds[next + i];
    return true;
}

void job_free(struct received_job *job) {
    if (job->is_mapped && job->payload != MAP_FAILED) munmap(job->payload, job->header.length);
    for (int i = 0; i < JOB_STREAMS; i++) {
        if (job->fds[i] >= 0) close(job->fds[i]);
        job->fds[i] = -1;
    }
}

void report_send(int control, const struct worker_report *report, const uint8_t *result) {
    struct iovec parts[2] = {{(void *)(uintptr_t)report, sizeof *report}, {(void *)(uintptr_t)result, report->result_length}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    while (sendmsg(control, &message, MSG_NOSIGNAL) < 0 && errno == EINTR) continue;
}
