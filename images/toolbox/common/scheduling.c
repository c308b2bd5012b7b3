#define _GNU_SOURCE
#include "scheduling.h"

#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>

/* Nice 15 is a 28th of the weight of nice 0: of 200 processes that spin on one processor, seven run before the runner does. */
#define BEHIND_RUNNER 15

static bool knows_processors;
static cpu_set_t processors;

void scheduling_remember(void) { knows_processors = sched_getaffinity(0, sizeof processors, &processors) == 0; }

void scheduling_unbind(void) {
    cpu_set_t now;
    if (!knows_processors || sched_getaffinity(0, sizeof now, &now) != 0 || CPU_EQUAL(&now, &processors)) return;
    sched_setaffinity(0, sizeof processors, &processors);
}

void scheduling_make_way(void) {
    static const struct rlimit no_way_back = {0, 0};
    int priority = getpriority(PRIO_PROCESS, 0);
    setpriority(PRIO_PROCESS, 0, priority + BEHIND_RUNNER);
    setrlimit(RLIMIT_NICE, &no_way_back);
}
