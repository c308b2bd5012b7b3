/*
 * Attempts actions that a sandbox refuses, and prints the outcomes. Used by `brig doctor --attack` and by brig's tests, in a sandbox and in
 * a container without protection. It is static, so it runs in every image.
 *
 *   attempts all NAME=VALUE...   prints a line for each attempt: its name, a tab, its outcome
 *   attempts prepare DIRECTORY   as root in a container without protection: makes everything there that the attempts need to succeed
 *   attempts wait SECONDS        is the first process of such a container
 *   attempts uid                 prints the effective user; a setuid copy of this program is called with this
 *
 * An outcome is "done" when the attempt succeeded, "#13" or several of these when the kernel refused it with errno 13, "nothing" when
 * there was nothing to find, "found" and the things found, "untried: " and the reason, or "ended by signal 9".
 */
#include "attempts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_ATTEMPTS = 128, SECONDS_EACH = 20, MOST_FORKS = 200, PAUSE_MICROSECONDS = 25000 };

struct running {
    const struct attempt *attempt;
    pid_t process;
    int answer;
};

static const struct attempt *const groups[] = {authority_attempts, kernel_attempts, file_attempts, scratch_attempts, network_attempts};

/* The processes of an attempt that has used up the limit end only after the attempt itself. */
static pid_t fork_patiently(void) {
    pid_t child = fork();
    for (int i = 0; child < 0 && i < MOST_FORKS; i++) {
        usleep(PAUSE_MICROSECONDS);
        child = fork();
    }
    return child;
}

static void start(struct running *one) {
    int ends[2];
    fflush(stdout);
    if (one->process || pipe(ends) != 0) return;
    one->process = fork_patiently();
    if (one->process == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(SECONDS_EACH);
        print_outcome(one->attempt->run());
        _exit(0);
    }
    close(ends[1]);
    one->answer = ends[0];
}

static void finish(struct running *one) {
    printf("%s\t", one->attempt->name);
    if (one->process <= 0) {
        puts("untried: no process could be started for it");
        return;
    }
    int status;
    waitpid(one->process, &status, 0);
    char answer[1024];
    // This does not wait: if the attempt was ended, processes that it left behind may keep the other end of this pipe open.
    fcntl(one->answer, F_SETFL, O_NONBLOCK);
    ssize_t length = read(one->answer, answer, sizeof answer);
    close(one->answer);
    if (length > 0) fwrite(answer, 1, (size_t) length, stdout);
    else printf("ended by signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static int attempt_all(void) {
    static struct running all[MOST_ATTEMPTS];
    size_t count = 0;
    // Processes that an ended attempt leaves behind become children of this one, and not of the engine.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        for (const struct attempt *attempt = groups[i]; attempt->name && count < MOST_ATTEMPTS; attempt++)
            all[count++].attempt = attempt;
    for (size_t i = 0; i < count; i++)
        if (all[i].attempt->waits) start(&all[i]);
    for (size_t i = 0; i < count; i++) {
        start(&all[i]);
        finish(&all[i]);
    }
    while (waitpid(-1, NULL, 0) > 0) continue;
    return fflush(stdout) == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (argc > 2) give(argc - 2, argv + 2);
    if (strcmp(what, "all") == 0) return attempt_all();
    if (strcmp(what, "prepare") == 0 && argc == 3) return prepare(argv[2]);
    if (strcmp(what, "uid") == 0) return printf("%d\n", (int) geteuid()) > 0 ? 0 : 1;
    if (strcmp(what, "wait") == 0 && argc == 3) {
        sleep((unsigned) atoi(argv[2]));
        return 0;
    }
    fputs("usage: attempts all NAME=VALUE... | prepare DIRECTORY | wait SECONDS | uid\n", stderr);
    return 2;
}
