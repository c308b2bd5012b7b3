#include "copy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int copy_self(const char *to) {
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (from < 0) return errno;
    int file = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    if (file < 0) return errno;
    char piece[65536];
    ssize_t length;
    while ((length = read(from, piece, sizeof piece)) > 0)
        if (write(file, piece, (size_t) length) != length) return errno ? errno : ENOSPC;
    fchmod(file, 0755);
    close(from);
    return close(file) == 0 ? 0 : errno;
}

void mount_again(const char *path) {
    mount(NULL, path, NULL, MS_REMOUNT | MS_BIND, NULL);
}

int run_program(const char *path, const char *argument, char answer[16]) {
    int output[2], refusal[2], number = 0;
    if (pipe2(output, O_CLOEXEC) != 0 || pipe2(refusal, O_CLOEXEC) != 0) return errno;
    pid_t child = fork();
    if (child < 0) return errno;
    if (child == 0) {
        dup2(output[1], STDOUT_FILENO);
        execl(path, path, argument, (char *) NULL);
        number = errno;
        if (write(refusal[1], &number, sizeof number) < 0) _exit(126);
        _exit(127);
    }
    close(output[1]);
    close(refusal[1]);
    memset(answer, 0, 16);
    if (read(output[0], answer, 15) < 0) answer[0] = '\0';
    if (read(refusal[0], &number, sizeof number) != sizeof number) number = 0;
    close(output[0]);
    close(refusal[0]);
    waitpid(child, NULL, 0);
    return number;
}
