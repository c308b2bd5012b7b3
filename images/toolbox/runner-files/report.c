#define _GNU_SOURCE
#include "report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file-protocol.h"
#include "io.h"
#include "wire.h"

#define SECTION_MAX (512u << 10)
/* More bytes than the name of a process can have, including its line break. */
#define NAME_SIZE 64u

#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif

static const char *const files[] = {
    "/proc/self/status",
    "/proc/self/mountinfo",
    "/proc/self/limits",
    "/proc/net/dev",
    "/proc/net/route",
    "/proc/net/ipv6_route",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/shmmax",
    "/proc/sys/kernel/shmall",
    "/proc/sys/kernel/shmmni",
    "/proc/sys/kernel/shm_rmid_forced",
    "/proc/sys/kernel/sem",
    "/proc/sys/kernel/msgmax",
    "/proc/sys/kernel/msgmnb",
    "/proc/sys/kernel/msgmni",
    "/proc/sys/fs/mqueue/queues_max",
    "/proc/sys/fs/mqueue/msg_max",
    "/proc/sys/fs/mqueue/msgsize_max",
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory.swap.max",
    "/sys/fs/cgroup/pids.max",
    "/sys/fs/cgroup/cpu.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes",
    "/sys/fs/cgroup/pids/pids.max",
    "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
    "/sys/fs/cgroup/cpu/cpu.cfs_period_us",
};

static void write_section(FILE *out, const char *name, const void *data, size_t size) {
    uint8_t head[REPORT_SECTION_HEAD_BYTES];
    put16(head, (uint16_t)strlen(name));
    put32(head + 2, (uint32_t)size);
    fwrite(head, 1, sizeof head, out);
    fwrite(name, 1, strlen(name), out);
    fwrite(data, 1, size, out);
}

/* Leaves out a file that does not exist: which cgroup files there are depends on the version of cgroups. */
static void write_file_section(FILE *out, const char *path, char *space) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    size_t used = 0;
    ssize_t n;
    while (used < SECTION_MAX && (n = read(fd, space + used, SECTION_MAX - used)) > 0) used += (size_t)n;
    close(fd);
    write_section(out, path, space, used);
}

static int answer(long result) { return result < 0 ? errno : 0; }

static int try_socket(int family, int type, int protocol) {
    int fd = socket(family, type, protocol);
    int error = answer(fd);
    if (fd >= 0) close(fd);
    return error;
}

static int try_setuid_bit(void) {
    char path[] = "/tmp/.brig-probe-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0) return -1;
    int error = answer(fchmod(fd, 04700));
    close(fd);
    unlink(path);
    return error;
}

/* An empty file counts as refused, because a file is hidden by mounting an empty one over it. */
static int try_read(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno;
    char byte;
    ssize_t n = read(fd, &byte, 1);
    int error = n == 0 ? ENODATA : answer(n);
    close(fd);
    return error;
}

static int try_write_root(void) {
    int fd = open("/.brig-probe", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int error = answer(fd);
    if (fd >= 0) {
        close(fd);
        unlink("/.brig-probe");
    }
    return error;
}

/* The call as coreutils make it, with a flag that gVisor of 2022 does not know. */
static int try_statx(void) {
    uint64_t space[64];
    return answer(syscall(SYS_statx, AT_FDCWD, "/", AT_NO_AUTOMOUNT | AT_SYMLINK_NOFOLLOW, 0x7ff, space));
}

/* Device 0:0 marks a removed file in an overlay. The kernel lets anybody make it, so only the seccomp filter can refuse. */
static int try_device(void) {
    static const char path[] = "/tmp/.brig-probe-device";
    int error = answer(mknod(path, S_IFCHR | 0600, 0));
    if (error == 0) unlink(path);
    return error;
}

/* Tries a lock of an open file, by giving back one that does not exist. */
static int try_lock(void) {
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    int error = answer(fcntl(fd, F_OFD_SETLK, &(struct flock){.l_type = F_UNLCK}));
    close(fd);
    return error;
}

static int probe(size_t which) {
    switch (which) {
    case 0: return try_socket(40, SOCK_STREAM, 0);
    case 1: return try_socket(38, SOCK_SEQPACKET, 0);
    case 2: return try_socket(17, SOCK_RAW, 0);
    case 3: return answer(syscall(SYS_io_uring_setup, 1, NULL));
    case 4: return try_setuid_bit();
    case 5: return answer(syscall(SYS_bpf, 0, NULL, 0));
    case 6: return answer(syscall(SYS_keyctl, 0, -3, 0));
    case 7: return answer(syscall(SYS_userfaultfd, 0));
    case 8: return answer(syscall(SYS_clone3, NULL, 0));
    case 9: return try_write_root();
    case 10: return try_statx();
    case 11: return try_socket(AF_NETLINK, SOCK_RAW, 15); /* NETLINK_KOBJECT_UEVENT: tells of the host's devices as they come and go */
    case 12: return try_device();
    case 13: return try_read("/proc/slabinfo");
    case 14: return try_read("/proc/vmallocinfo");
    case 15: return answer(syscall(SYS_io_setup, 0, NULL));
    case 16: return try_lock();
    case 17: return answer(syscall(SYS_sched_setaffinity, getppid(), 0, NULL)); /* no processor: the kernel refuses that too, but not as the filter does */
    case 18: return answer(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    case 19: return answer(unshare(CLONE_NEWUSER));
    case 20: return answer(mount("none", "/tmp", "tmpfs", 0, NULL));
    default: return -1;
    }
}

static const char *const probes[] = {
    "socket-vsock", "socket-alg", "socket-packet", "io-uring", "chmod-setuid",   "bpf",          "keyctl",        "userfaultfd",      "clone3",
    "write-root",   "statx",      "netlink-uevent", "mknod-device", "read-slabinfo", "read-vmallocinfo", "io-setup", "lock-of-open-file",
    "affinity-of-others", "ptrace", "unshare-user", "mount",
};

#define PROBES (sizeof probes / sizeof *probes)
/* From here on a probe that is allowed changes its process, which must not make another one. */
#define FIRST_CHANGE 18

enum { NOT_TRIED = -1, NO_ANSWER = -2 };

static void try_probes(volatile int *answers, size_t from) {
    for (size_t i = from; i < PROBES; i++) {
        answers[i] = NO_ANSWER; /* A seccomp filter may end the process here. */
        int error = probe(i);
        if (error >= 0) answers[i] = error;
        if (i >= FIRST_CHANGE) return;
    }
}

/* Runs the probes in children. Each child goes on where the last one ended. */
static void run_probes(volatile int *answers) {
    for (size_t i = 0; i < PROBES; i++) answers[i] = NOT_TRIED;
    for (size_t next = 0; next < PROBES;) {
        pid_t pid = fork();
        if (pid == 0) {
            try_probes(answers, next);
            _exit(0);
        }
        if (pid < 0 || waitpid(pid, NULL, 0) < 0 || answers[next] == NOT_TRIED) return;
        while (next < PROBES && answers[next] != NOT_TRIED) next++;
    }
}

/* Leaves out a probe that has no answer. False if none could be tried. */
static bool write_probes(FILE *out) {
    size_t size = PROBES * sizeof(int);
    int *answers = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (answers == MAP_FAILED) return false;
    run_probes(answers);
    for (size_t i = 0; i < PROBES; i++) {
        if (answers[i] < 0) continue;
        char name[64], value[16];
        snprintf(name, sizeof name, "probe/%s", probes[i]);
        write_section(out, name, value, (size_t)snprintf(value, sizeof value, "%d", answers[i]));
    }
    munmap(answers, size);
    return true;
}

static void write_stat(FILE *out, const char *path) {
    struct stat st;
    char name[4200], value[160];
    if (stat(path, &st) != 0) return;
    snprintf(name, sizeof name, "stat/%s", path);
    long long changed_ns = (long long)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
    int length = snprintf(value, sizeof value, "%llu %llu %o %u %u %lld", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
                          (unsigned)st.st_mode, st.st_uid, st.st_gid, changed_ns);
    write_section(out, name, value, (size_t)length);
}

/* The environment that the engine and the image gave to the container. Every command starts with it. */
static void write_environment(FILE *out, char *space) {
    size_t used = 0;
    for (char **variable = environ; *variable; variable++) {
        size_t length = strlen(*variable) + 1;
        if (used + length > SECTION_MAX) return;
        memcpy(space + used, *variable, length);
        used += length;
    }
    write_section(out, "environment", space, used);
}

/* The names of all processes of the container, each with a NUL behind it. If there is no room for all, there is no section. */
static void write_processes(FILE *out, char *space) {
    DIR *processes = opendir("/proc");
    if (!processes) return;
    size_t used = 0;
    for (struct dirent *entry; used + NAME_SIZE <= SECTION_MAX && (entry = readdir(processes));) {
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
        char path[sizeof entry->d_name + sizeof "/proc//comm"];
        snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;
        ssize_t n = read(fd, space + used, NAME_SIZE);
        close(fd);
        if (n <= 0) continue; /* It has ended. */
        used += (size_t)n;
        space[used - 1] = '\0';
    }
    closedir(processes);
    if (used + NAME_SIZE <= SECTION_MAX) write_section(out, "processes", space, used);
}

/* The kernel's name and version. They come from a system call, because an image or a mount could replace files in /proc. */
static void write_uname(FILE *out) {
    struct utsname name;
    char text[sizeof name.release + sizeof name.version];
    if (uname(&name) != 0) return;
    int length = snprintf(text, sizeof text, "%s\n%s", name.release, name.version);
    write_section(out, "uname", text, (size_t)length);
}

/* `paths` has one on each line. */
static void write_stats(FILE *out, const char *paths) {
    for (const char *at = paths; *at; at += strspn(at, "\n")) {
        char path[4150];
        int length = (int)strcspn(at, "\n");
        snprintf(path, sizeof path, "%.*s", length, at);
        write_stat(out, path);
        at += length;
    }
}

static bool write_report(FILE *out, const char *paths, char *space) {
    write_uname(out);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) write_file_section(out, files[i], space);
    write_environment(out, space);
    write_processes(out, space);
    write_stats(out, paths);
    return write_probes(out);
}

/* Writes everything at once, since the host would wake for each piece. At the end it is known whether memory sufficed. */
int report_write(int out, const char *paths) {
    char *bytes = NULL, *space = malloc(SECTION_MAX);
    size_t size;
    FILE *report = space ? open_memstream(&bytes, &size) : NULL;
    bool is_whole = report && write_report(report, paths, space) && !ferror(report);
    if (report && fclose(report) != 0) is_whole = false;
    int failed = is_whole ? write_all(out, bytes, size) : -1;
    free(bytes);
    free(space);
    return failed;
}
