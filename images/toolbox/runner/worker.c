#include "worker.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "command.h"
#include "files.h"
#include "scheduling.h"

static void run_file_operation(int control, struct received_job *job, const struct worker_slot *slots, const struct worker_slot *slot) {
    static uint8_t result[RESULT_MAX];
    struct worker_report report = {.what = REPORT_ENDED | REPORT_EMPTY, .kind = EXIT_FILE};
    struct file_job operation = {job->payload, job->header.length, job->fds[0], &slot->cancelled, slots};
    if (job->payload == MAP_FAILED) report.error = ENOMEM;
    else file_operation_run(&operation, &report, result);
    job_free(job);
    report_send(control, &report, result);
}

_Noreturn void worker_main(int control, const struct worker_slot *slots, struct worker_slot *slot) {
    command_adopt_orphans();
    uint8_t *packet = malloc(PACKET_MAX);
    struct received_job job;
    while (packet && job_receive(control, packet, &job)) {
        scheduling_unbind();
        if (job.header.kind == JOB_SPAWN) command_run(control, &job, slot);
        else if (job.header.kind == JOB_FILE) run_file_operation(control, &job, slots, slot);
        else report_send(control, &(struct worker_report){.what = REPORT_EMPTY}, NULL);
    }
    _exit(0);
}
