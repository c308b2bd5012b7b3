/* Tests of what the runner tells of its container. A filter of system calls gives each of its attempts an answer that no other has. */
#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static void *malloc_or_not(size_t size);
static FILE *open_memstream_or_not(char **bytes, size_t *size);
static void *mmap_or_not(size_t size);

#define malloc(size) malloc_or_not(size)
#define open_memstream(bytes, size) open_memstream_or_not(bytes, size)
#define mmap(at, size, protection, flags, fd, offset) mmap_or_not(size)
#include "../../../runner-files/report.c"
#undef malloc
#undef open_memstream
#undef mmap

#include "require.h"

#define MOST_SECTIONS 80

static struct section {
    char name[128];
    uint8_t *bytes;
    size_t length;
} sections[MOST_SECTIONS];
static size_t section_count;

static void take_sections(const uint8_t *at, const uint8_t *end) {
    for (section_count = 0; at < end; section_count++) {
        REQUIRE(section_count < MOST_SECTIONS && end - at >= REPORT_SECTION_HEAD_BYTES);
        struct section *s = &sections[section_count];
        size_t name_length = get16(at);
        s->length = get32(at + 2);
        at += REPORT_SECTION_HEAD_BYTES;
        REQUIRE(name_length < sizeof s->name && (size_t)(end - at) >= name_length + s->length);
        memcpy(s->name, at, name_length);
        s->name[name_length] = '\0';
        s->bytes = (uint8_t *)(uintptr_t)at + name_length;
        at = s->bytes + s->length;
    }
}

/* Takes the report of a child in which `prepare` has been called. */
static void report_after(void (*prepare)(void), const char *paths) {
    static uint8_t bytes[4u << 20];
    int ends[2], status;
    REQUIRE(pipe(ends) == 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        if (prepare) prepare();
        _exit(report_write(ends[1], paths) == 0 ? 0 : 1);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t n;
    while (used < sizeof bytes && (n = read(ends[0], bytes + used, sizeof bytes - used)) > 0) used += (size_t)n;
    close(ends[0]);
    REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
    take_sections(bytes, bytes + used);
}

static const struct section *section_of(const char *name) {
    const struct section *found = NULL;
    for (size_t i = 0; i < section_count; i++)
        if (strcmp(sections[i].name, name) == 0) {
            REQUIRE(!found);
            found = &sections[i];
        }
    return found;
}

static bool says(const char *name, const char *text) {
    const struct section *s = section_of(name);
    return s && s->length == strlen(text) && memcmp(s->bytes, text, s->length) == 0;
}

/* ---- attempts ----------------------------------------------------------------------------------------------------- */

#define ANY UINT32_MAX

/* A rule of the system call filter: which call it is for, which value one of the call's arguments must have, and the filter's answer. */
struct rule {
    uint32_t number, argument, value, action;
};

#define REFUSE(error) (SECCOMP_RET_ERRNO | (error))

static void filter_by(const struct rule *rules, size_t count) {
    struct sock_filter program[200];
    unsigned short used = 0;
    for (size_t i = 0; i < count; i++) {
        const struct rule *rule = &rules[i];
        program[used++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
        program[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule->number, 0, (uint8_t)(rule->value == ANY ? 1 : 3));
        if (rule->value != ANY) {
            program[used++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, args) + 8 * rule->argument));
            program[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule->value, 0, 1);
        }
        program[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, rule->action);
    }
    program[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &(struct sock_fprog){.len = used, .filter = program}) == 0);
}

/* The rules are in the order of the probes, from socket-vsock on. */
static const struct rule every_call[] = {
    {SYS_socket, 0, 40, REFUSE(101)},
    {SYS_socket, 0, 38, REFUSE(102)},
    {SYS_socket, 0, 17, REFUSE(103)},
    {SYS_io_uring_setup, 0, ANY, REFUSE(104)},
    {SYS_fchmod, 1, 04700, REFUSE(105)},
    {SYS_bpf, 0, ANY, REFUSE(106)},
    {SYS_keyctl, 0, ANY, REFUSE(107)},
    {SYS_userfaultfd, 0, ANY, REFUSE(108)},
    {SYS_clone3, 0, ANY, REFUSE(109)},
    {SYS_openat, 2, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, REFUSE(110)},
    {SYS_statx, 2, AT_NO_AUTOMOUNT | AT_SYMLINK_NOFOLLOW, REFUSE(111)},
    {SYS_socket, 0, AF_NETLINK, REFUSE(112)},
    {SYS_mknodat, 2, S_IFCHR | 0600, REFUSE(113)},
    {SYS_io_setup, 0, ANY, REFUSE(116)},
    {SYS_fcntl, 1, F_OFD_SETLK, REFUSE(117)},
    {SYS_sched_setaffinity, 0, ANY, REFUSE(118)},
    {SYS_ptrace, 0, ANY, REFUSE(119)},
    {SYS_unshare, 0, CLONE_NEWUSER, REFUSE(120)},
    {SYS_mount, 0, ANY, REFUSE(121)},
#ifdef SYS_mknod
    {SYS_mknod, 1, S_IFCHR | 0600, REFUSE(113)},
#endif
};

#define EVERY_CALL (sizeof every_call / sizeof *every_call)

static void refuse_every_call(void) { filter_by(every_call, EVERY_CALL); }

/* Returns from each call as if it had been done, so that nothing is changed. A socket's number is that of a standard stream. */
static void allow_every_call(void) {
    struct rule rules[EVERY_CALL];
    memcpy(rules, every_call, sizeof rules);
    for (size_t i = 0; i < EVERY_CALL; i++) rules[i].action = REFUSE(0);
    filter_by(rules, EVERY_CALL);
}

static uint32_t deadly_call;

static void die_of_one_call(void) {
    static const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    struct rule rules[EVERY_CALL];
    memcpy(rules, every_call, sizeof rules);
    for (size_t i = 0; i < EVERY_CALL; i++)
        if (rules[i].number == deadly_call) rules[i].action = SECCOMP_RET_KILL_PROCESS;
    filter_by(rules, EVERY_CALL);
}

static const char *const names[] = {
    "socket-vsock", "socket-alg", "socket-packet", "io-uring", "chmod-setuid", "bpf", "keyctl", "userfaultfd", "clone3", "write-root", "statx",
    "netlink-uevent", "mknod-device", "read-slabinfo", "read-vmallocinfo", "io-setup", "lock-of-open-file", "affinity-of-others", "ptrace",
    "unshare-user", "mount",
};

#define NAMES (sizeof names / sizeof *names)

static bool probe_says(const char *name, int answer) {
    char section[64], text[16];
    snprintf(section, sizeof section, "probe/%s", name);
    snprintf(text, sizeof text, "%d", answer);
    return says(section, text);
}

static bool was_probed(const char *name) {
    char section[64];
    snprintf(section, sizeof section, "probe/%s", name);
    return section_of(section) != NULL;
}

static void put_over(const char *path, const char *content, size_t length) {
    static int next;
    char source[64];
    snprintf(source, sizeof source, "/tmp/over-%d", next++);
    int fd = open(source, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    REQUIRE(fd >= 0 && write(fd, content, length) == (ssize_t)length && close(fd) == 0);
    REQUIRE(mount(source, path, NULL, MS_BIND, NULL) == 0 && unlink(source) == 0);
}

static bool reads_as_memory(const char *name) { return strcmp(name, "read-slabinfo") == 0 || strcmp(name, "read-vmallocinfo") == 0; }

static void each_attempt_gets_the_answer_to_its_own_call(void) {
    report_after(refuse_every_call, "");
    for (size_t i = 0; i < NAMES; i++)
        if (!reads_as_memory(names[i])) REQUIRE(probe_says(names[i], 101 + (int)i));
    report_after(allow_every_call, "");
    for (size_t i = 0; i < NAMES; i++)
        if (!reads_as_memory(names[i])) REQUIRE(probe_says(names[i], 0));
}

static bool is_empty_directory(const char *path) { return rmdir(path) == 0 && mkdir(path, 0700) == 0; }

/* Those that are really made: sockets that every kernel has, and files that everybody may write. Nothing stays of them. */
static const struct rule only_of_others[] = {{SYS_ptrace, 0, ANY, REFUSE(1)}, {SYS_unshare, 0, ANY, REFUSE(1)}, {SYS_mount, 0, ANY, REFUSE(1)}};
static void refuse_what_changes_a_process(void) { filter_by(only_of_others, 3); }

static void in_an_empty_root(void) {
    REQUIRE(chroot("/tmp/root") == 0 && chdir("/") == 0);
    refuse_what_changes_a_process();
}

static void an_attempt_that_succeeds_leaves_nothing(void) {
    REQUIRE(mkdir("/tmp/root", 0700) == 0 && mkdir("/tmp/root/tmp", 0700) == 0);
    report_after(in_an_empty_root, "");
    REQUIRE(probe_says("write-root", 0) && probe_says("chmod-setuid", 0) && probe_says("mknod-device", 0) && probe_says("netlink-uevent", 0) && probe_says("statx", 0));
    REQUIRE(probe_says("io-setup", EFAULT) && probe_says("lock-of-open-file", 0) && probe_says("affinity-of-others", EINVAL));
    REQUIRE(probe_says("read-slabinfo", ENOENT) && !section_of("processes") && !section_of("/proc/self/status"));
    REQUIRE(is_empty_directory("/tmp/root/tmp") && rmdir("/tmp/root/tmp") == 0 && rmdir("/tmp/root") == 0);
}

static void a_file_that_is_hidden_by_an_empty_one_cannot_be_read(void) {
    put_over("/proc/slabinfo", "", 0);
    put_over("/proc/vmallocinfo", "x", 1);
    report_after(refuse_what_changes_a_process, "");
    REQUIRE(probe_says("read-slabinfo", ENODATA) && probe_says("read-vmallocinfo", 0));
    REQUIRE(umount("/proc/slabinfo") == 0 && umount("/proc/vmallocinfo") == 0);
}

/* The others are made all the same, by another process. */
static void an_attempt_that_is_deadly_has_no_answer(void) {
    static const struct {
        uint32_t call;
        const char *name;
    } deadly[] = {{SYS_io_uring_setup, "io-uring"}, {SYS_keyctl, "keyctl"}, {SYS_ptrace, "ptrace"}, {SYS_mount, "mount"}};
    for (size_t k = 0; k < sizeof deadly / sizeof *deadly; k++) {
        deadly_call = deadly[k].call;
        report_after(die_of_one_call, "");
        for (size_t i = 0; i < NAMES; i++) {
            bool is_deadly = strcmp(names[i], deadly[k].name) == 0;
            REQUIRE(was_probed(names[i]) == !is_deadly);
            if (!is_deadly && !reads_as_memory(names[i])) REQUIRE(probe_says(names[i], 101 + (int)i));
        }
    }
}

/* ---- files, and what else there is -------------------------------------------------------------------------------- */

static bool has_content(const char *path) {
    char text[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return !section_of(path);
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    const struct section *s = section_of(path);
    return n >= 0 && s && s->length == (size_t)n && memcmp(s->bytes, text, s->length) == 0;
}

static void files_are_there_as_they_are(void) {
    static char large[SECTION_MAX + 1000];
    memset(large, 'r', sizeof large);
    large[SECTION_MAX - 1] = 'e';
    put_over("/proc/sys/kernel/sem", large, sizeof large);
    put_over("/proc/sys/kernel/msgmnb", "", 0);
    report_after(refuse_what_changes_a_process, "");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (strcmp(files[i], "/proc/self/status") == 0 || strcmp(files[i], "/proc/sys/kernel/sem") == 0 || strcmp(files[i], "/proc/self/mountinfo") == 0) continue;
        REQUIRE(has_content(files[i]));
    }
    REQUIRE(section_of("/proc/self/status")->length > 100 && section_of("/proc/self/mountinfo")->length > 100 && says("/proc/sys/kernel/msgmnb", ""));
    const struct section *cut = section_of("/proc/sys/kernel/sem");
    REQUIRE(cut && cut->length == SECTION_MAX && memcmp(cut->bytes, large, SECTION_MAX) == 0);
    REQUIRE(umount("/proc/sys/kernel/sem") == 0 && umount("/proc/sys/kernel/msgmnb") == 0);
    struct utsname name;
    char text[200];
    REQUIRE(uname(&name) == 0);
    snprintf(text, sizeof text, "%s\n%s", name.release, name.version);
    REQUIRE(says("uname", text));
}

static void paths_are_told_by_what_the_kernel_knows_of_them(void) {
    char text[200];
    struct stat st;
    REQUIRE(mkdir("/tmp/owned", 0751) == 0 && chown("/tmp/owned", 12, 34) == 0 && stat("/tmp/owned", &st) == 0);
    report_after(refuse_what_changes_a_process, "\n/tmp/missing\n/tmp/owned\n\n/");
    snprintf(text, sizeof text, "%llu %llu 40751 12 34 %lld", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino, (long long)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec);
    REQUIRE(says("stat//tmp/owned", text) && section_of("stat//") && !section_of("stat//tmp/missing") && !section_of("stat/"));
    report_after(refuse_what_changes_a_process, "");
    for (size_t i = 0; i < section_count; i++) REQUIRE(strncmp(sections[i].name, "stat/", 5) != 0);
    REQUIRE(rmdir("/tmp/owned") == 0);
}

static size_t large_variable;

static void set_environment(void) {
    refuse_what_changes_a_process();
    clearenv();
    setenv("A", "1", 1);
    setenv("EMPTY", "", 1);
    if (large_variable == 0) return;
    char *value = malloc(large_variable + 1);
    memset(value, 'v', large_variable);
    value[large_variable] = '\0';
    setenv("L", value, 1);
}

static void the_environment_is_told_whole_or_not_at_all(void) {
    large_variable = 0;
    report_after(set_environment, "");
    const struct section *s = section_of("environment");
    REQUIRE(s && s->length == 11 && memcmp(s->bytes, "A=1\0EMPTY=", 11) == 0);
    large_variable = SECTION_MAX - 11 - 3; /* with L= before it and NUL behind it */
    report_after(set_environment, "");
    s = section_of("environment");
    REQUIRE(s && s->length == SECTION_MAX && memcmp(s->bytes + 11, "L=v", 3) == 0 && s->bytes[SECTION_MAX - 1] == '\0');
    large_variable++;
    report_after(set_environment, "");
    REQUIRE(!section_of("environment"));
}

/* Directories as /proc has them for processes, each with such a name. */
static void put_process(const char *directory, const char *name, size_t length) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%s", directory);
    REQUIRE(mkdir(path, 0755) == 0);
    if (!name) return;
    snprintf(path, sizeof path, "/proc/%s/comm", directory);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    REQUIRE(fd >= 0 && write(fd, name, length) == (ssize_t)length && close(fd) == 0);
}

static void only_processes_are_named(void) {
    REQUIRE(mount("tmpfs", "/proc", "tmpfs", 0, NULL) == 0);
    put_process("0", "the first\n", 10);
    put_process("99", "last\n", 5);
    put_process("10", "", 0);
    put_process("11", NULL, 0);
    put_process(":1", "colon\n", 6);
    put_process("-1", "sign\n", 5);
    report_after(refuse_what_changes_a_process, "");
    REQUIRE(umount("/proc") == 0);
    const struct section *s = section_of("processes");
    REQUIRE(s && s->length == 15);
    REQUIRE(memcmp(s->bytes, "the first\0last", 15) == 0 || memcmp(s->bytes, "last\0the first", 15) == 0);
}

/* There are as many processes as there is room for, each with the longest name that is read, and then one more. */
static void too_many_processes_are_not_named(void) {
    enum { MOST = SECTION_MAX / NAME_SIZE - 1 };
    char directory[16], name[NAME_SIZE];
    memset(name, 'n', sizeof name);
    REQUIRE(mount("tmpfs", "/proc", "tmpfs", 0, NULL) == 0);
    for (size_t i = 0; i <= MOST; i++) {
        if (i == MOST) report_after(refuse_what_changes_a_process, "");
        snprintf(directory, sizeof directory, "%zu", i);
        put_process(directory, name, sizeof name);
    }
    const struct section *s = section_of("processes");
    REQUIRE(s && s->length == MOST * NAME_SIZE && s->bytes[NAME_SIZE - 1] == '\0' && s->bytes[NAME_SIZE - 2] == 'n');
    report_after(refuse_what_changes_a_process, "");
    REQUIRE(umount("/proc") == 0 && !section_of("processes"));
}

static void a_report_that_nobody_reads_has_failed(void) {
    int ends[2];
    REQUIRE(pipe(ends) == 0 && close(ends[0]) == 0);
    pid_t pid = fork();
    int status;
    REQUIRE(pid >= 0);
    if (pid == 0) {
        refuse_what_changes_a_process();
        _exit(report_write(ends[1], "") != 0 && errno == EPIPE ? 0 : 1);
    }
    REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
    close(ends[1]);
}

/* The allocation that fails. A report needs each of them. */
static enum { NOTHING, MALLOC, MEMSTREAM, MMAP, EVERYTHING } lacking;

static void *malloc_or_not(size_t size) { return lacking == MALLOC ? NULL : malloc(size); }
static FILE *open_memstream_or_not(char **bytes, size_t *size) { return lacking == MEMSTREAM ? NULL : open_memstream(bytes, size); }
static void *mmap_or_not(size_t size) { return lacking == MMAP ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0); }

static void without_memory_for_all_of_it_there_is_no_report(void) {
    for (lacking = NOTHING; lacking < EVERYTHING; lacking++) {
        int ends[2], status;
        uint8_t byte;
        REQUIRE(pipe(ends) == 0);
        pid_t pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0) {
            refuse_what_changes_a_process();
            close(ends[0]);
            signal(SIGPIPE, SIG_IGN);
            _exit(report_write(ends[1], "/") == 0 || errno == EPIPE ? 0 : 1);
        }
        close(ends[1]);
        REQUIRE((read(ends[0], &byte, 1) == 1) == (lacking == NOTHING));
        close(ends[0]);
        REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == (lacking == NOTHING ? 0 : 1));
    }
    lacking = NOTHING;
}

/*
 * Refuses every new process, and each attempt needs one. So no attempt is made, and the report must not say what came of it: a number there would
 * read as a refusal by the kernel.
 */
static void allow_no_process(void) {
    static const struct rule rules[] = {
        {.number = SYS_clone, .value = ANY, .action = REFUSE(EAGAIN)},
        {.number = SYS_clone3, .value = ANY, .action = REFUSE(EAGAIN)},
        {.number = SYS_fork, .value = ANY, .action = REFUSE(EAGAIN)},
    };
    filter_by(rules, sizeof rules / sizeof *rules);
}

static void what_cannot_be_tried_has_no_answer(void) {
    report_after(allow_no_process, "");
    REQUIRE(section_count > 0);
    for (size_t i = 0; i < PROBES; i++) REQUIRE(!was_probed(probes[i]));
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0); /* what is not written yet would be written by every child too */
    signal(SIGPIPE, SIG_IGN);
    REQUIRE(unshare(CLONE_NEWNS | CLONE_NEWNET) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && mount("tmpfs", "/tmp", "tmpfs", 0, NULL) == 0);
    RUN(each_attempt_gets_the_answer_to_its_own_call);
    RUN(an_attempt_that_succeeds_leaves_nothing);
    RUN(a_file_that_is_hidden_by_an_empty_one_cannot_be_read);
    RUN(an_attempt_that_is_deadly_has_no_answer);
    RUN(files_are_there_as_they_are);
    RUN(paths_are_told_by_what_the_kernel_knows_of_them);
    RUN(the_environment_is_told_whole_or_not_at_all);
    RUN(only_processes_are_named);
    RUN(too_many_processes_are_not_named);
    RUN(a_report_that_nobody_reads_has_failed);
    RUN(without_memory_for_all_of_it_there_is_no_report);
    RUN(what_cannot_be_tried_has_no_answer);
    return 0;
}
