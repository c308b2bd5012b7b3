/* Attempts to get other rights, and to see something of the host. */
#include "attempts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "copy.h"

static int engine_socket(void) {
    need("engineSocket");
    const char *path;
    for (int i = 0; (path = given("engineSocket", i)); i++) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
        int one = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        tried(failure(one) ? errno : failure(connect(one, (struct sockaddr *) &address, sizeof address)));
        close(one);
    }
    return all_tried();
}

static bool is_harmless(dev_t device) {
    static const unsigned known[][2] = {{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}, {5, 1}, {5, 2}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (major(device) == known[i][0] && minor(device) == known[i][1]) return true;
    return false;
}

static int look_at_device(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void) kind, (void) place;
    bool is_device = S_ISBLK(status->st_mode) || S_ISCHR(status->st_mode);
    if (is_device && strncmp(path, "/dev/pts", 8) != 0 && !is_harmless(status->st_rdev)) found(path);
    return 0;
}

static int device_nodes(void) {
    if (nftw("/dev", look_at_device, 16, FTW_PHYS) != 0) return errno;
    return all_found();
}

/* Looks for the secret in one file of every process that can be seen. It is given in halves, so that these arguments do not have it. */
static int look_in_processes(const char *name) {
    char secret[128];
    snprintf(secret, sizeof secret, "%s%s", need("secretBegin"), need("secretEnd"));
    enum { MOST_BYTES = 1 << 20 };
    char *text = malloc(MOST_BYTES);
    DIR *processes = opendir("/proc");
    if (!processes || !text) return errno;
    struct dirent *entry;
    while ((entry = readdir(processes))) {
        int pid = atoi(entry->d_name);
        if (pid <= 0 || pid == getpid()) continue;
        char path[300];
        snprintf(path, sizeof path, "/proc/%s/%s", entry->d_name, name);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0) continue;
        ssize_t length = 0, piece;
        while (length < MOST_BYTES && (piece = read(file, text + length, (size_t) (MOST_BYTES - length))) > 0) length += piece;
        close(file);
        if (memmem(text, (size_t) length, secret, strlen(secret))) found(entry->d_name);
    }
    return all_found();
}

static int host_processes(void) {
    return look_in_processes("cmdline");
}

static int environment_of_processes(void) {
    return look_in_processes("environ");
}

static int host_name(void) {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    if (strcmp(name, need("hostName")) == 0) found(name);
    return all_found();
}

static int setuid_program(void) {
    const char *path = need("setuidProgram");
    if (geteuid() == 0) untried("the commands are root, to whom such a program gives nothing");
    char answer[16];
    int refusal = run_program(path, "uid", answer);
    if (refusal) return refusal;
    return strcmp(answer, "0\n") == 0 ? DONE : NOTHING;
}

static int first_process_file(const char *name, int flags) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", given_number("firstProcess"), name);
    return open_and_close(path, flags);
}

static int first_process(void) {
    return first_process_file("exe", O_WRONLY);
}

static int container_log(void) {
    return first_process_file("fd/1", O_WRONLY);
}

static int first_process_memory(void) {
    return first_process_file("mem", O_RDWR);
}

static int host_file(void) {
    return open_and_close(need("outside"), O_RDONLY);
}

static void look_for_logins(const char *home) {
    static const char *const names[] = {".ssh", ".aws", ".docker", ".config/gcloud", ".netrc", ".git-credentials", ".gnupg", ".kube"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[4352];
        struct stat status;
        snprintf(path, sizeof path, "%s/%s", home, names[i]);
        if (lstat(path, &status) == 0) found(path);
    }
}

/* The homes of this user, of root and of the host's user may be the same path. */
static int login_files(void) {
    const char *own = getenv("HOME");
    if (own && strcmp(own, "/root") != 0) look_for_logins(own);
    look_for_logins("/root");
    const char *home;
    for (int i = 0; (home = given("hostHome", i)); i++)
        if (strcmp(home, "/root") != 0 && (!own || strcmp(home, own) != 0)) look_for_logins(home);
    return all_found();
}

const struct attempt authority_attempts[] = {
    {.name = "engine-socket", .run = engine_socket},
    {.name = "device-nodes", .run = device_nodes},
    {.name = "host-processes", .run = host_processes},
    {.name = "environment-of-processes", .run = environment_of_processes},
    {.name = "host-name", .run = host_name},
    {.name = "setuid-program", .run = setuid_program},
    {.name = "first-process", .run = first_process},
    {.name = "first-process-memory", .run = first_process_memory},
    {.name = "container-log", .run = container_log},
    {.name = "host-file", .run = host_file},
    {.name = "login-files", .run = login_files},
    {0},
};
