#define _GNU_SOURCE
#include "receipt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "io.h"
#include "sha256.h"

#define DEPTH_MAX 200
#define HASH_FILE_MAX (4u << 20)
#define HASH_ALL_MAX (32u << 20)
#define CLOCK_CHECK 256

static struct timespec session_start;

void receipt_note_start(void) { clock_gettime(CLOCK_REALTIME_COARSE, &session_start); }

/* Programs run or obey files of these names without being asked to. */
static const char *const file_names[] = {
    ".bash_login", ".bash_logout", ".bash_profile", ".bashrc", ".bazelrc", ".devcontainer.json", ".dir-locals.el", ".drone.yml",
    ".envrc", ".exrc", ".gdbinit", ".gitattributes", ".gitconfig", ".gitlab-ci.yml", ".gitmodules", ".irbrc", ".lldbinit",
    ".mcp.json", ".mise.toml", ".npmrc", ".nvim.lua", ".nvimrc", ".pnpmfile.cjs", ".pre-commit-config.yaml", ".profile", ".pryrc",
    ".tmux.conf", ".travis.yml", ".vimrc", ".yarnrc", ".yarnrc.yml", ".zlogin", ".zprofile", ".zshenv", ".zshrc", "GNUmakefile",
    "Jenkinsfile", "Justfile", "Makefile", "Rakefile", "Taskfile.yml", "appveyor.yml", "azure-pipelines.yml", "binding.gyp",
    "bitbucket-pipelines.yml", "build.gradle", "build.gradle.kts", "build.rs", "conftest.py", "justfile", "lefthook.yml",
    "makefile", "mise.toml", "noxfile.py", "package.json", "settings.gradle", "setup.py", "sitecustomize.py", "tox.ini",
    "usercustomize.py",
};

/* Every file in a directory of one of these names is reported, whatever its own name is. */
static const char *const directory_names[] = {
    ".cargo", ".circleci", ".claude", ".cursor", ".devcontainer", ".githooks", ".husky", ".idea", ".vscode", "actions", "hooks", "workflows",
};

struct walk {
    int out;
    const volatile uint32_t *cancelled;
    uint64_t deadline_ms;
    uid_t user;
    bool strips;
    const char *skipped; /* paths with line breaks between them */
    uint64_t seen, hashed;
    uint32_t records, omitted;
    uint8_t unfinished;
    char path[PATH_MAX];
    size_t length;
};

static uint64_t clock_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool changed(const struct stat *st) {
    if (st->st_ctim.tv_sec != session_start.tv_sec) return st->st_ctim.tv_sec > session_start.tv_sec;
    return st->st_ctim.tv_nsec >= session_start.tv_nsec;
}

static bool is_in(const char *const *names, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

/* Whether the path lies below a directory of such a name, however deep. */
static bool lies_in_directory(const struct walk *w) {
    const char *at = w->path;
    for (size_t i = 0; i < sizeof directory_names / sizeof *directory_names; i++) {
        const char *name = directory_names[i], *found = at;
        size_t length = strlen(name);
        while ((found = strstr(found, name))) {
            if (found > at && found[-1] == '/' && found[length] == '/') {
                if (name[0] == '.') return true;
                /* "actions" and "workflows" count only below .github, "hooks" only in a repository. */
                if (strcmp(name, "hooks") != 0 && strstr(at, "/.github/")) return true;
                if (strcmp(name, "hooks") == 0 && !ends_with(at, ".sample") && strstr(at, ".git/")) return true;
            }
            found += length;
        }
    }
    return false;
}

static bool runs_by_itself(const struct walk *w, const char *name) {
    if (is_in(file_names, sizeof file_names / sizeof *file_names, name) || ends_with(name, ".pth")) return true;
    if (strcmp(name, "config") == 0 && strstr(w->path, ".git/")) return true;
    return lies_in_directory(w);
}

/* False when there is no digest: the file is too large, or it is not a regular one any more. */
static bool hash_file(struct walk *w, int directory, const char *name, uint8_t digest[32]) {
    static uint8_t chunk[64u << 10];
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return false;
    struct stat st;
    bool fits = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= HASH_FILE_MAX && w->hashed + (uint64_t)st.st_size <= HASH_ALL_MAX;
    struct sha256 hash;
    sha256_begin(&hash);
    uint64_t size = 0;
    ssize_t n = 0;
    while (fits && (n = read(fd, chunk, sizeof chunk)) > 0) {
        size += (uint64_t)n;
        fits = size <= HASH_FILE_MAX;
        sha256_add(&hash, chunk, (size_t)n);
    }
    close(fd);
    w->hashed += size;
    if (!fits || n < 0) return false;
    sha256_end(&hash, digest);
    return true;
}

static void write_record(struct walk *w, int directory, const char *name, const struct stat *st, uint16_t why) {
    if (w->records >= RECEIPT_RECORDS_MAX) {
        w->omitted++;
        return;
    }
    uint8_t head[RECEIPT_RECORD_BYTES] = {0};
    if (S_ISREG(st->st_mode) && hash_file(w, directory, name, head + RECEIPT_DIGEST_AT)) why |= RECEIPT_HASHED;
    put16(head, why);
    put16(head + 2, (uint16_t)w->length);
    put32(head + 4, st->st_mode);
    put32(head + 8, st->st_uid);
    put32(head + 12, st->st_gid);
    put64(head + 16, (uint64_t)st->st_size);
    w->records++;
    if (write_all(w->out, head, sizeof head) != 0 || write_all(w->out, w->path, w->length) != 0) w->unfinished = RECEIPT_NO_STREAM;
}

/* Takes away special rights, and removes a device. Only root in a container can have made these; the seccomp filter of others refuses it. */
static void strip(int directory, const char *name, const struct stat *st, uint16_t *why) {
    bool is_device = *why & RECEIPT_DEVICE;
    if (is_device && unlinkat(directory, name, 0) == 0) *why |= RECEIPT_STRIPPED;
    if (is_device || !(*why & (RECEIPT_SETID | RECEIPT_CAPABILITIES)) || !S_ISREG(st->st_mode)) return;
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    struct stat now;
    bool is_same = fstat(fd, &now) == 0 && now.st_ino == st->st_ino && now.st_dev == st->st_dev;
    bool done = is_same && fchmod(fd, now.st_mode & 0777) == 0;
    if (done && *why & RECEIPT_CAPABILITIES) done = fremovexattr(fd, "security.capability") == 0;
    if (done) *why |= RECEIPT_STRIPPED;
    close(fd);
}

static bool has_capabilities(const struct walk *w) { return lgetxattr(w->path, "security.capability", NULL, 0) > 0; }

static void judge(struct walk *w, int directory, const char *name, const struct stat *st) {
    uint16_t why = 0;
    bool is_file = S_ISREG(st->st_mode);
    if ((is_file || S_ISLNK(st->st_mode)) && runs_by_itself(w, name)) why |= RECEIPT_RUNS;
    if (is_file && st->st_mode & (S_ISUID | S_ISGID)) why |= RECEIPT_SETID;
    if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode)) why |= RECEIPT_DEVICE;
    if (is_file && st->st_mode & 0111 && has_capabilities(w)) why |= RECEIPT_CAPABILITIES;
    if (st->st_uid != w->user) why |= RECEIPT_FOREIGN;
    if (strcmp(name, ".git") == 0) why |= RECEIPT_REPOSITORY;
    if (!why) return;
    if (w->strips) strip(directory, name, st, &why);
    write_record(w, directory, name, st, why);
}

static bool is_skipped(const struct walk *w) {
    for (const char *at = w->skipped; at && *at;) {
        size_t length = strcspn(at, "\n");
        if (length == w->length && memcmp(at, w->path, length) == 0) return true;
        at += length + (at[length] == '\n');
    }
    return false;
}

static bool goes_on(struct walk *w) {
    if (w->unfinished == RECEIPT_NO_STREAM || w->unfinished == RECEIPT_NO_TIME) return false;
    if (++w->seen % CLOCK_CHECK == 0 && (*w->cancelled || clock_ms() > w->deadline_ms)) w->unfinished = RECEIPT_NO_TIME;
    return w->unfinished != RECEIPT_NO_TIME;
}

static void note_closed(struct walk *w) {
    if (w->unfinished == RECEIPT_FINISHED) w->unfinished = RECEIPT_CLOSED;
}

static void walk_directory(struct walk *w, int fd, int depth);

static void enter(struct walk *w, int directory, const char *name, int depth) {
    int fd = depth < DEPTH_MAX ? openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd >= 0) walk_directory(w, fd, depth + 1);
    else note_closed(w);
}

static int part_of_repository(const char *name) {
    return (strcmp(name, "HEAD") == 0) | (strcmp(name, "objects") == 0) << 1 | (strcmp(name, "refs") == 0) << 2;
}

/* Returns which part of a repository the entry is, or 0. */
static int walk_entry(struct walk *w, int directory, const char *name, int depth) {
    struct stat st;
    if (is_skipped(w)) return 0;
    if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno != ENOENT) note_closed(w);
        return 0;
    }
    if (changed(&st)) judge(w, directory, name, &st);
    if (S_ISDIR(st.st_mode)) enter(w, directory, name, depth);
    return part_of_repository(name);
}

/* Git takes a directory with these three names in it for a repository, whatever it is called. */
static void judge_bare(struct walk *w, int fd, int found) {
    struct stat st;
    if (found != 7 || fstat(fd, &st) != 0 || !changed(&st) || ends_with(w->path, "/.git")) return;
    write_record(w, fd, ".", &st, RECEIPT_REPOSITORY);
}

/* Closes the descriptor. */
static void walk_directory(struct walk *w, int fd, int depth) {
    DIR *directory = fdopendir(fd);
    if (!directory) {
        close(fd);
        note_closed(w);
        return;
    }
    size_t length = w->length;
    struct dirent *entry;
    int repository = 0;
    while ((errno = 0, entry = readdir(directory)) && goes_on(w)) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
        size_t size = strlen(name);
        if (length + 1 + size >= sizeof w->path) {
            note_closed(w);
            continue;
        }
        w->path[length] = '/';
        memcpy(w->path + length + 1, name, size + 1);
        w->length = length + 1 + size;
        repository |= walk_entry(w, fd, name, depth);
        w->length = length;
        w->path[length] = 0;
    }
    if (!entry && errno != 0) note_closed(w);
    judge_bare(w, fd, repository);
    closedir(directory);
}

static void walk_root(struct walk *w, const char *root, size_t length) {
    if (length == 0 || length >= sizeof w->path) return;
    memcpy(w->path, root, length);
    w->path[length] = 0;
    w->length = length;
    int fd = open(w->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) walk_directory(w, fd, 0);
    else note_closed(w);
}

uint32_t receipt_run(const struct file_job *job, const struct file_request *request, struct file_result *result) {
    static struct walk w;
    w = (struct walk){.out = job->stream, .cancelled = job->cancelled, .user = (uid_t)request->offset};
    w.deadline_ms = clock_ms() + request->mode;
    w.strips = request->flags & RECEIPT_STRIPS;
    char *roots = strndup((const char *)request->path, request->path_length);
    char *skipped = strndup((const char *)request->second, request->second_length);
    w.skipped = skipped;
    for (const char *at = roots; at && *at;) {
        size_t length = strcspn(at, "\n");
        walk_root(&w, at, length);
        at += length + (at[length] == '\n');
    }
    bool failed = !roots || !skipped;
    free(roots);
    free(skipped);
    put64(result->bytes, w.seen);
    put32(result->bytes + 8, w.omitted);
    put32(result->bytes + 12, w.unfinished);
    result->length = RECEIPT_RESULT_BYTES;
    return failed ? ENOMEM : 0;
}
