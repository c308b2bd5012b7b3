#define _GNU_SOURCE
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scheduling.h"
#include "tree.h"
#include "wire.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
/* Some group that root is not in. */
#define OTHER_GROUP 65534

struct command {
    struct spawn_request request;
    char **vectors, *strings; /* memory of the fields below */
    char **argv, **changes, *cwd;
    char **envp;
    const int *fds;
    struct worker_slot *slot;
    /* The child writes these; it shares the worker's memory until it execs. */
    volatile int error;
    volatile uint32_t stage;
};

/* ---- in the process of a command --------------------------------------------------------------------------------- */

static const char *environment_value(char **envp, const char *name) {
    size_t length = strlen(name);
    for (; *envp; envp++)
        if (strncmp(*envp, name, length) == 0 && (*envp)[length] == '=') return *envp + length + 1;
    return NULL;
}

/* Like execvp(3): if the kernel does not know the format of the file, it is run as a shell script. */
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

/* Tries each directory of PATH, as a shell does. It reports a file that may not be executed rather than a missing one. */
static int exec_along_path(const char *path, struct command *command) {
    const char *name = command->argv[0];
    size_t name_length = strlen(name);
    int worst = ENOENT;
    char full[PATH_MAX];
    while (*path) {
        size_t length = strcspn(path, ":");
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

static int exec_command(struct command *command) {
    const char *name = command->argv[0];
    if (!*name) return ENOENT;
    if (strchr(name, '/')) {
        exec_at(name, command);
        return errno;
    }
    const char *path = environment_value(command->envp, "PATH");
    return exec_along_path(path ? path : DEFAULT_PATH, command);
}

static _Noreturn void fail(struct command *command, uint32_t stage, int error) {
    command->stage = stage;
    command->error = error;
    _exit(127);
}

static int child_stream(struct command *command, int which) {
    const int *fds = command->fds;
    uint8_t flags = command->request.flags;
    if (flags & SPAWN_PTY) return fds[0];
    if (flags & SPAWN_NO_STDIN) {
        if (which == 0) return 0; /* PID 1 opened /dev/null here before any command could put something else in its place */
        return which == 2 && (flags & SPAWN_MERGE) ? fds[0] : fds[which - 1];
    }
    return which == 2 && (flags & SPAWN_MERGE) ? fds[1] : fds[which];
}

/* Every descriptor of a worker closes on exec, so only the three that are placed here reach the command. */
static void place_streams(struct command *command) {
    int streams[3];
    for (int i = 0; i < 3; i++) {
        /* Each stream is moved above the standard numbers first, or it could overwrite another that is still to be placed. */
        int fd = child_stream(command, i);
        streams[i] = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (streams[i] < 0) fail(command, STAGE_STREAMS, errno);
    }
    for (int i = 0; i < 3; i++)
        if (dup2(streams[i], i) < 0) fail(command, STAGE_STREAMS, errno);
    if ((command->request.flags & SPAWN_PTY) && ioctl(0, TIOCSCTTY, 0) != 0) fail(command, STAGE_STREAMS, errno);
}

/* The child of a vfork runs on the worker's memory, so nothing here may change what the worker relies on. */
static _Noreturn void run_child(struct command *command) {
    setsid();
    scheduling_make_way();
    /* The worker could set this too, but it may get to run only after the command's first output. */
    command->slot->child = getpid();
    place_streams(command);
    if (chdir(*command->cwd ? command->cwd : "/") != 0) fail(command, STAGE_CWD, errno);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    fail(command, STAGE_EXEC, exec_command(command));
}

/* ---- a command, in its worker ------------------------------------------------------------------------------------ */

static bool lacks_subreaper;

static void describe_end(struct worker_report *report, int status, const struct rusage *usage) {
    report->kind = WIFSIGNALED(status) ? EXIT_SIGNALLED : EXIT_EXITED;
    report->code = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : (uint32_t)WEXITSTATUS(status);
    report->user_us = (uint64_t)usage->ru_utime.tv_sec * 1000000 + (uint64_t)usage->ru_utime.tv_usec;
    report->system_us = (uint64_t)usage->ru_stime.tv_sec * 1000000 + (uint64_t)usage->ru_stime.tv_usec;
    report->max_rss = (uint64_t)usage->ru_maxrss * 1024;
}

/* Whether the command has left no process, however deep it is. Reaps those that have ended. */
static bool nothing_is_left(void) {
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid == 0) return false;
        if (pid < 0 && errno != EINTR) return true;
    }
}

/* If nothing is left, the same report says so, so that this is known before another command can begin. */
static bool report_end(int control, const struct command *command, int status, const struct rusage *usage) {
    struct worker_report report = {.what = REPORT_ENDED};
    if (command->error) {
        report.kind = EXIT_NOT_STARTED;
        report.error = (uint32_t)command->error;
        report.stage = command->stage;
    } else {
        describe_end(&report, status, usage);
    }
    bool is_empty = nothing_is_left();
    if (is_empty) report.what |= REPORT_EMPTY;
    report_send(control, &report, NULL);
    return is_empty;
}

static void supervise(int control, pid_t main_child, const struct command *command) {
    for (;;) {
        int status;
        struct rusage usage;
        pid_t pid = wait4(-1, &status, 0, &usage);
        if (pid < 0 && errno == EINTR) continue;
        if (pid < 0) break; /* no child is left, however deep it was */
        if (pid != main_child) continue;
        command->slot->child = 0;
        if (report_end(control, command, status, &usage)) return;
    }
    report_send(control, &(struct worker_report){.what = REPORT_EMPTY}, NULL);
}

static void refuse(int control, enum exit_kind kind, uint32_t stage, int error) {
    struct worker_report report = {.what = REPORT_ENDED | REPORT_EMPTY, .kind = kind, .stage = stage, .error = (uint32_t)error};
    report_send(control, &report, NULL);
}

static bool names_same(const char *a, const char *b) {
    size_t length = strcspn(a, "=");
    return strncmp(a, b, length) == 0 && (b[length] == '=' || b[length] == 0);
}

static bool is_changed(const char *variable, char **changes) {
    for (; *changes; changes++)
        if (names_same(*changes, variable)) return true;
    return false;
}

/* The container's own environment with the changes of the request: "NAME=value" sets a variable, "NAME" alone removes it. */
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

/* The arguments and strings of the request, and memory for them. */
static bool unpack(struct command *command, size_t length) {
    size_t vectors = (size_t)command->request.argc + command->request.envc + 2;
    command->vectors = malloc(vectors * sizeof *command->vectors);
    command->strings = malloc(length);
    if (!command->vectors || !command->strings) return false;
    command->argv = command->vectors;
    command->changes = command->vectors + command->request.argc + 1;
    spawn_strings(&command->request, command->strings, command->argv, command->changes, &command->cwd);
    return true;
}

/* Frees the job. Returns once nothing of the command is left; the end of its main process is reported when it comes. */
static void command_run(int control, struct received_job *job, struct worker_slot *slot) {
    struct command command = {.fds = job->fds, .slot = slot};
    if (job->payload == MAP_FAILED || !spawn_parse(job->payload, job->header.length, &command.request)) {
        job_free(job);
        refuse(control, EXIT_NOT_STARTED, STAGE_REQUEST, EINVAL);
        return;
    }
    bool is_unpacked = unpack(&command, job->header.length);
    if (is_unpacked) command.envp = merge_environment(command.changes, command.request.envc);
    errno = ENOMEM;
    /* With vfork no page table is copied, and a failed exec is known before it returns. */
    pid_t pid = command.envp ? vfork() : -1;
    if (pid == 0) run_child(&command);
    int error = errno;
    if (pid > 0 && lacks_subreaper) slot->orphans_since = start_of(pid);
    free(command.envp);
    free(command.vectors);
    free(command.strings);
    job_free(job);
    if (pid < 0) refuse(control, EXIT_NOT_STARTED, is_unpacked ? STAGE_FORK : STAGE_REQUEST, error);
    else supervise(control, pid, &command);
}

/* ---- file operations --------------------------------------------------------------------------------------------- */

static void set_inherited(const struct worker_place *place, bool are_inherited) {
    fcntl(place->control, F_SETFD, are_inherited ? 0 : FD_CLOEXEC);
    fcntl(place->shared_fd, F_SETFD, are_inherited ? 0 : FD_CLOEXEC);
}

/*
 * Turns the worker into the program of file operations, which lies beside the runner and then takes the job. Returns errno if that fails,
 * but none by which the path of the operation could seem not to be there. The kernel lets no command look into a process whose program its
 * user may not read, from the first instruction on. Root may read it, but the kernel does the same for a process whose real group is not
 * its effective one. The program sets that right. It has the environment of PID 1, because its report says what that is.
 */
static int become_file_program(const struct worker_place *place) {
    char path[PATH_MAX], control[16], shared[16], slot[16], group[16];
    gid_t own = getegid();
    snprintf(path, sizeof path, "%s-files", (const char *)(uintptr_t)getauxval(AT_EXECFN));
    snprintf(control, sizeof control, "%d", place->control);
    snprintf(shared, sizeof shared, "%d", place->shared_fd);
    snprintf(slot, sizeof slot, "%d", (int)(place->slot - place->shared->slots));
    snprintf(group, sizeof group, "%u", (unsigned)own);
    if (geteuid() == 0) setresgid(OTHER_GROUP, own, own);
    set_inherited(place, true);
    execve(path, (char *[]){path, control, shared, slot, group, NULL}, environ);
    int error = errno == ENOMEM ? ENOMEM : EIO;
    set_inherited(place, false);
    setresgid(own, own, own);
    return error;
}

_Noreturn void worker_main(const struct worker_place *place) {
    /* This keeps even a process that calls setsid or forks twice below this one, and nowhere else. */
    lacks_subreaper = prctl(PR_SET_CHILD_SUBREAPER, 1) != 0;
    uint8_t *packet = malloc(PACKET_MAX);
    struct received_job job;
    while (packet) {
        uint32_t kind = job_await(place->control);
        scheduling_unbind();
        int error = kind == JOB_FILE ? become_file_program(place) : 0;
        if (kind == 0 || !job_receive(place->control, packet, &job)) break;
        if (kind == JOB_SPAWN) {
            command_run(place->control, &job, place->slot);
            continue;
        }
        job_free(&job);
        if (kind == JOB_FILE) refuse(place->control, EXIT_FILE, STAGE_NONE, error);
        else report_send(place->control, &(struct worker_report){.what = REPORT_EMPTY}, NULL);
    }
    _exit(0);
}
