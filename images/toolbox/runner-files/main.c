/*
 * What PID 1 of a sandbox leaves to another program: the file operations, and `connect`, the bridge that `docker exec` starts. A worker
 * of PID 1 becomes this program for its first file operation, and then does one after the other. It keeps the worker's process, its socket
 * to PID 1 and the memory that it shares with it; nothing else is open in it. Whoever starts it otherwise gets nothing that is not theirs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "connect.h"
#include "files.h"
#include "scheduling.h"

static void run_file_operation(int control, struct received_job *job, const struct file_job *common) {
    static uint8_t result[RESULT_MAX];
    struct worker_report report = {.what = REPORT_ENDED | REPORT_EMPTY, .kind = EXIT_FILE};
    struct file_job operation = *common;
    operation.request = job->payload;
    operation.size = job->header.length;
    operation.stream = job->fds[0];
    if (job->payload == MAP_FAILED) report.error = ENOMEM;
    else file_operation_run(&operation, &report, result);
    job_free(job);
    report_send(control, &report, result);
}

static int serve(int control, const struct shared *shared, const struct worker_slot *slot) {
    static uint8_t packet[PACKET_MAX];
    const struct file_job common = {.cancelled = &slot->cancelled, .shared = shared};
    struct received_job job;
    while (job_receive(control, packet, &job)) {
        scheduling_unbind();
        if (job.header.kind == JOB_FILE) {
            run_file_operation(control, &job, &common);
            continue;
        }
        job_free(&job);
        report_send(control, &(struct worker_report){.what = REPORT_EMPTY}, NULL);
    }
    return 0;
}

int main(int argc, char **argv) {
    prctl(PR_SET_DUMPABLE, 0);
    if (argc == 2 && strcmp(argv[1], "connect") == 0) return run_bridge();
    scheduling_remember();
    if (argc != 5) {
        fprintf(stderr, "usage: runner-files connect; PID 1 of a sandbox starts this program otherwise, for its file operations\n");
        return 2;
    }
    int control = atoi(argv[1]), shared_fd = atoi(argv[2]);
    unsigned slot = (unsigned)atoi(argv[3]);
    gid_t group = (gid_t)strtoul(argv[4], NULL, 10);
    if ((getgid() != group || getegid() != group) && setresgid(group, group, group) != 0) return 1;
    fcntl(control, F_SETFD, FD_CLOEXEC);
    const struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ, MAP_SHARED, shared_fd, 0);
    close(shared_fd);
    if (shared == MAP_FAILED || slot >= WORKER_SLOTS) return 1;
    return serve(control, shared, &shared->slots[slot]);
}
