/* Attempts on the kernel: its settings, its memory, and the calls that a sandbox's filter refuses. */
#include "attempts.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int kernel_settings(void) {
    static const char *const paths[] = {"/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger"};
    for (size_t i = 0; i < 3; i++) tried(open_and_close(paths[i], O_WRONLY));
    return all_tried();
}

static int each_entry(const char *place, void (*visit)(const char *path)) {
    DIR *directory = opendir(place);
    if (!directory) return errno;
    struct dirent *entry;
    while ((entry = readdir(directory))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        char path[512];
        snprintf(path, sizeof path, "%s/%s", place, entry->d_name);
        visit(path);
    }
    closedir(directory);
    return 0;
}

static void open_if_writable(const char *path) {
    struct stat status;
    if (lstat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_mode & 0200) tried(open_and_close(path, O_WRONLY));
}

static int system_files(void) {
    int refusal = each_entry("/sys/kernel", open_if_writable);
    return refusal ? refusal : all_tried();
}

static int read_one_byte(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno;
    char byte;
    ssize_t length = read(file, &byte, 1);
    int refusal = length < 0 ? errno : length == 0 ? ENODATA : 0;
    close(file);
    return refusal;
}

static int kernel_memory(void) {
    static const char *const paths[] = {"/proc/kcore", "/proc/timer_list", "/proc/keys"};
    for (size_t i = 0; i < 3; i++) tried(read_one_byte(paths[i]));
    return all_tried();
}

static int firmware(void) {
    int refusal = each_entry("/sys/firmware", found);
    return refusal ? refusal : all_found();
}

static int kernel_log(void) {
    char text[4096];
    return failure(klogctl(3, text, sizeof text));
}

static int open_control_file(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void) status, (void) kind;
    static const char *const names[] = {"cgroup.procs", "tasks", "pids.max", "release_agent"};
    for (size_t i = 0; i < 4; i++)
        if (strcmp(path + place->base, names[i]) == 0) tried(open_and_close(path, O_WRONLY));
    return 0;
}

static int control_groups(void) {
    if (nftw("/sys/fs/cgroup", open_control_file, 16, FTW_PHYS) != 0) return errno;
    return all_tried();
}

static int mounts(void) {
    // The mount is made in a namespace of its own, if there can be one, so that nobody else sees it.
    unshare(CLONE_NEWNS);
    if (mount("brig", "/proc", "tmpfs", MS_RDONLY, "size=64k") != 0) return errno;
    umount2("/proc", MNT_DETACH);
    return DONE;
}

static int namespaces(void) {
    static const int kinds[] = {CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWUSER};
    for (size_t i = 0; i < 6; i++) tried(failure(unshare(kinds[i])));
    return all_tried();
}

static int other_root(void) {
    return failure(chroot("/"));
}

static int trace(void) {
    pid_t process = (pid_t) given_number("firstProcess");
    if (ptrace(PTRACE_SEIZE, process, 0, 0) != 0) return errno;
    ptrace(PTRACE_DETACH, process, 0, 0);
    return DONE;
}

static int kernel_keys(void) {
    enum { SESSION_KEYRING = -3 };
    return failure((int) syscall(SYS_add_key, "user", "brig-attempt", "x", (size_t) 1, SESSION_KEYRING));
}

static int kernel_programs(void) {
    union bpf_attr map;
    memset(&map, 0, sizeof map);
    map.map_type = BPF_MAP_TYPE_ARRAY;
    map.key_size = map.value_size = 4;
    map.max_entries = 1;
    return failure((int) syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map));
}

static int performance_events(void) {
    struct perf_event_attr event;
    memset(&event, 0, sizeof event);
    event.type = PERF_TYPE_SOFTWARE;
    event.size = sizeof event;
    event.config = PERF_COUNT_SW_TASK_CLOCK;
    return failure((int) syscall(SYS_perf_event_open, &event, 0, -1, -1, 0));
}

static int raw_packets(void) {
    return failure(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
}

const struct attempt kernel_attempts[] = {
    {.name = "kernel-settings", .run = kernel_settings},
    {.name = "system-files", .run = system_files},
    {.name = "kernel-memory", .run = kernel_memory},
    {.name = "firmware", .run = firmware},
    {.name = "kernel-log", .run = kernel_log},
    {.name = "control-groups", .run = control_groups},
    {.name = "mounts", .run = mounts},
    {.name = "namespaces", .run = namespaces},
    {.name = "other-root", .run = other_root},
    {.name = "trace-first-process", .run = trace},
    {.name = "kernel-keys", .run = kernel_keys},
    {.name = "kernel-programs", .run = kernel_programs},
    {.name = "performance-events", .run = performance_events},
    {.name = "raw-packets", .run = raw_packets},
    {0},
};
