#define _GNU_SOURCE
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scheduling.h"
#include "tree.h"
#include "wire.h"

struct job {
    struct job_header header;
    uint8_t *payload;
    bool mapped;
    int fds[3]; /* as many streams as the request calls for, in the order stdin, stdout, stderr; then -1 */
};

static void close_fd(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static void send_report(int control, const struct worker_report *report, const uint8_t *result) {
    struct iovec parts[2] = {{(void *)(uintptr_t)report, sizeof *report}, {(void *)(uintptr_t)result, report->result_length}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = report->result_length ? 2 : 1};
    while (sendmsg(control, &message, MSG_NOSIGNAL) < 0 && errno == EINTR) continue;
}

/* False when the runner has closed the socket: the worker is no longer needed. */
static bool receive_job(int control, uint8_t *packet, struct job *job) {
    struct iovec parts[2] = {{&job->header, sizeof job->header}, {packet, PACKET_MAX}};
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(4 * sizeof(int))];
    } ancillary;
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = &ancillary, .msg_controllen = sizeof ancillary};
    ssize_t n;
    do n = recvmsg(control, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < (ssize_t)sizeof job->header) return false;

    int received[4] = {-1, -1, -1, -1};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    if (c && c->cmsg_type == SCM_RIGHTS) memcpy(received, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
    int next = 0;
    job->payload = packet;
    job->mapped = job->header.in_memory_file != 0;
    if (job->mapped) {
        int memory = received[next++];
        job->payload = mmap(NULL, job->header.length, PROT_READ, MAP_PRIVATE, memory, 0);
        close(memory);
    }
    /* The streams follow in order; which of them exist is told by the kind of job. */
    for (int i = 0; i < 3; i++) job->fds[i] = received[next + i];
    return true;
}

static void free_job(struct job *job) {
    if (job->mapped && job->payload != MAP_FAILED) munmap(job->payload, job->header.length);
    for (int i = 0; i < 3; i++) close_fd(&job->fds[i]);
}

/* ---- a command ------------------------------------------------------------------------------------------------- */

struct command {
    struct spawn_request request;
    char **argv, **envp, *cwd;
    const int *fds;
    struct worker_slot *slot;
    /* Written by the child, which shares this memory until it execs. */
    volatile int error;
    volatile uint32_t stage;
};

static const char *environment_value(char **envp, const char *name) {
    size_t length = strlen(name);
    for (; *envp; envp++)
        if (strncmp(*envp, name, length) == 0 && (*envp)[length] == '=') return *envp + length + 1;
    return NULL;
}

/* A text file without an interpreter line is a shell script, as execvp(3) has it. */
static void exec_at(const char *path, struct command *command) {
    execve(path, command->argv, command->envp);
    if (errno != ENOEXEC) return;
    size_t argc = command->request.argc;
    char **script = alloca((argc + 2) * sizeof *script);
    script[0] = command->argv[0];
    script[1] = (char *)(uintptr_t)path;
    for (size_t i = 1; i <= argc; i++) script[i + 1] = command->argv[i];
    execve("/bin/sh", script, command->envp);
}

/* Looks along PATH as a shell does: the first file that can be executed wins, and "found but not allowed" beats "not found". */
static int exec_command(struct command *command) {
    const char *name = command->argv[0];
    if (!*name) return ENOENT;
    if (strchr(name, '/')) {
        exec_at(name, command);
        return errno;
    }
    const char *path = environment_value(command->envp, "PATH");
    if (!path) path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    int worst = ENOENT;
    char full[PATH_MAX];
    while (*path) {
        size_t length = strcspn(path, ":");
        size_t name_length = strlen(name);
        if (length + name_length + 2 <= sizeof full) {
            memcpy(full, path, length);
            size_t at = length;
            if (length > 0) full[at++] = '/';
            memcpy(full + at, name, name_length + 1);
            exec_at(full, command);
            if (errno == EACCES) worst = EACCES;
            else if (errno != ENOENT && errno != ENOTDIR) return errno;
        }
        path += length;
        if (*path == ':') path++;
    }
    return worst;
}

static void fail(struct command *command, uint32_t stage, int error) {
    command->stage = stage;
    command->error = error;
    _exit(127);
}

static int child_stream(struct command *command, int which) {
    const int *fds = command->fds;
    uint8_t flags = command->request.flags;
    if (flags & SPAWN_PTY) return fds[0];
    if (flags & SPAWN_NO_STDIN) { /* the sent descriptors are then stdout and stderr only */
        if (which == 0) return 0; /* /dev/null, opened before any command could put something else in its place */
        return which == 2 && (flags & SPAWN_MERGE) ? fds[0] : fds[which - 1];
    }
    return which == 2 && (flags & SPAWN_MERGE) ? fds[1] : fds[which];
}

/*
 * Runs in the vforked child, on the worker's memory: nothing here may change what the worker relies on. Every
 * descriptor of a worker closes on exec, so only the three placed here reach the command.
 */
static _Noreturn void run_child(struct command *command) {
    setsid();
    scheduling_make_way();
    command->slot->child = getpid(); /* here and not in the worker, which may come to run only after the command's first output */
    int streams[3];
    for (int i = 0; i < 3; i++) {
        /* dup above the standard numbers first, so that no stream overwrites another that is still to be placed */
        int fd = child_stream(command, i);
        streams[i] = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (streams[i] < 0) fail(command, STAGE_STREAMS, errno);
    }
    for (int i = 0; i < 3; i++)
        if (dup2(streams[i], i) < 0) fail(command, STAGE_STREAMS, errno);
    if ((command->request.flags & SPAWN_PTY) && ioctl(0, TIOCSCTTY, 0) != 0) fail(command, STAGE_STREAMS, errno);
    if (chdir(*command->cwd ? command->cwd : "/") != 0) fail(command, STAGE_CWD, errno);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    fail(command, STAGE_EXEC, exec_command(command));
    __builtin_unreachable();
}

static void describe_end(struct worker_report *report, int status, const struct rusage *usage) {
    report->kind = WIFSIGNALED(status) ? EXIT_SIGNALLED : EXIT_EXITED;
    report->code = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : (uint32_t)WEXITSTATUS(status);
    report->user_us = (uint64_t)usage->ru_utime.tv_sec * 1000000 + (uint64_t)usage->ru_utime.tv_usec;
    report->system_us = (uint64_t)usage->ru_stime.tv_sec * 1000000 + (uint64_t)usage->ru_stime.tv_usec;
    report->max_rss = (uint64_t)usage->ru_maxrss * 1024;
}

/* Waits for the command, tells the runner, and stays until the last child of it, however deep, is gone. */
static void supervise(int control, pid_t main_child, struct command *command, struct worker_slot *slot) {
    for (;;) {
        int status;
        struct rusage usage;
        pid_t pid = wait4(-1, &status, 0, &usage);
        if (pid < 0 && errno == EINTR) continue;
        if (pid < 0) break;
        if (pid != main_child) continue;
        slot->child = 0;
        struct worker_report report = {.what = REPORT_ENDED};
        if (command->error) {
            report.kind = EXIT_NOT_STARTED;
            report.error = (uint32_t)command->error;
            report.stage = command->stage;
        } else {
            describe_end(&report, status, &usage);
        }
        send_report(control, &report, NULL);
    }
    send_report(control, &(struct worker_report){.what = REPORT_EMPTY}, NULL);
}

static void refuse(int control, uint32_t stage, int error) {
    send_report(control, &(struct worker_report){.what = REPORT_ENDED, .kind = EXIT_NOT_STARTED, .stage = stage, .error = (uint32_t)error}, NULL);
    send_report(control, &(struct worker_report){.what = REPORT_EMPTY}, NULL);
}

extern char **environ;

static bool names_same(const char *a, const char *b) {
    size_t length = strcspn(a, "=");
    return strncmp(a, b, length) == 0 && (b[length] == '=' || b[length] == 0);
}

static bool is_changed(const char *variable, char **changes) {
    for (; *changes; changes++)
        if (names_same(*changes, variable)) return true;
    return false;
}

/* The container's own environment with the request's changes: "NAME=value" sets, "NAME" alone removes. */
static char **merge_environment(char **changes, uint32_t count) {
    size_t own = 0, used = 0;
    while (environ[own]) own++;
    char **merged = malloc((own + count + 1) * sizeof *merged);
    if (!merged) return NULL;
    for (size_t i = 0; i < own; i++)
        if (!is_changed(environ[i], changes)) merged[used++] = environ[i];
    for (uint32_t i = 0; i < count; i++)
        if (strchr(changes[i], '=')) merged[used++] = changes[i];
    merged[used] = NULL;
    return merged;
}

static bool lacks_subreaper;

static void run_command(int control, struct job *job, struct worker_slot *slot) {
    struct command command = {.fds = job->fds, .slot = slot};
    if (job->payload == MAP_FAILED || !spawn_parse(job->payload, job->header.length, &command.request)) {
        free_job(job);
        refuse(control, STAGE_REQUEST, EINVAL);
        return;
    }
    size_t vectors = (size_t)command.request.argc + command.request.envc + 2;
    char **pointers = malloc(vectors * sizeof *pointers);
    char *store = malloc(job->header.length);
    if (!pointers || !store) {
        free(pointers);
        free(store);
        free_job(job);
        refuse(control, STAGE_REQUEST, ENOMEM);
        return;
    }
    command.argv = pointers;
    char **changes = pointers + command.request.argc + 1;
    spawn_strings(&command.request, store, command.argv, changes, &command.cwd);
    command.envp = merge_environment(changes, command.request.envc);
    errno = ENOMEM;
    /* vfork: no page table is copied, and a failed exec is known before it returns. */
    pid_t pid = command.envp ? vfork() : -1;
    if (pid == 0) run_child(&command);
    int error = errno;
    if (pid > 0 && lacks_subreaper) slot->orphans_since = start_of(pid);
    free(command.envp);
    free(pointers);
    free(store);
    free_job(job);
    if (pid < 0) refuse(control, STAGE_FORK, error);
    else supervise(control, pid, &command, slot);
}

/* ---- the worker ------------------------------------------------------------------------------------------------ */

static void run_file_operation(int control, struct job *job, struct worker_slot *slot) {
    static uint8_t result[RESULT_MAX];
    struct worker_report report = {.what = REPORT_ENDED | REPORT_EMPTY, .kind = EXIT_FILE};
    struct file_operation_job operation = {job->payload, job->header.length, job->fds[0], &slot->cancelled};
    if (job->payload == MAP_FAILED) report.error = ENOMEM;
    else file_operation_run(&operation, &report, result);
    free_job(job);
    send_report(control, &report, result);
}

int write_all(int fd, const void *data, size_t size) {
    const uint8_t *at = data;
    while (size > 0) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

_Noreturn void worker_main(int control, struct worker_slot *slot) {
    /* Descendants that call setsid or fork twice hang under this process and nowhere else. */
    lacks_subreaper = prctl(PR_SET_CHILD_SUBREAPER, 1) != 0;
    uint8_t *packet = malloc(PACKET_MAX);
    struct job job;
    while (packet && receive_job(control, packet, &job)) {
        scheduling_unbind();
        if (job.header.kind == JOB_SPAWN) run_command(control, &job, slot);
        else if (job.header.kind == JOB_FILE) run_file_operation(control, &job, slot);
        else send_report(control, &(struct worker_report){.what = REPORT_EMPTY}, NULL);
    }
    _exit(0);
}
