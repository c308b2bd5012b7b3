/* Tests of the receipt. Its source is included, so that tests can choose when the session began. They run as root, who may make devices. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* Another process does the first just before a file of this name is opened, and the second just after the first piece of it was read. */
static const char *awaited_name;
static void (*before_open)(void), (*after_read)(void);

static int openat_here(int directory, const char *name, int flags) {
    if (before_open && strcmp(name, awaited_name) == 0) {
        before_open();
        before_open = NULL;
    }
    return openat(directory, name, flags);
}

static ssize_t read_here(int fd, void *to, size_t size) {
    ssize_t n = read(fd, to, size);
    if (after_read) after_read();
    after_read = NULL;
    return n;
}

#define openat openat_here
#define read read_here
#include "../../../runner-files/receipt-list.c"
#include "../../../runner-files/receipt-strip.c"
#include "../../../runner-files/receipt.c"
#undef openat
#undef read

#include "digest.h"
#include "root.h"

#define MOST_RECORDS 600

struct record {
    uint16_t why;
    uint32_t mode, uid, rule;
    uint64_t size;
    uint8_t digest[32];
    char path[PATH_MAX];
};

static struct record found[MOST_RECORDS];
static size_t found_count;
static uint8_t answer[RESULT_MAX];
static uint32_t answer_length;
static uint32_t cancelled;
static struct shared shared;

static void begin_session_now(void) { clock_gettime(CLOCK_REALTIME_COARSE, &shared.session_start); }

static void begin(void) {
    empty_root();
    cancelled = 0;
    shared.session_start = (struct timespec){0};
}

static void read_records(int fd) {
    uint8_t head[RECEIPT_RECORD_BYTES];
    FILE *file = fdopen(fd, "r");
    found_count = 0;
    REQUIRE(file);
    rewind(file);
    while (fread(head, sizeof head, 1, file) == 1) {
        struct record *record = &found[found_count++];
        size_t length = get16(head + 2);
        *record = (struct record){.why = get16(head), .mode = get32(head + 4), .uid = get32(head + 8), .rule = get32(head + 12), .size = get64(head + 16)};
        memcpy(record->digest, head + RECEIPT_DIGEST_AT, 32);
        REQUIRE(found_count < MOST_RECORDS && length < PATH_MAX && fread(record->path, 1, length, file) == length);
        record->path[length] = 0;
        REQUIRE(strlen(record->path) == length);
    }
    fclose(file);
}

/* A few of what the host sends. */
static const char rules[] = "!*.git/**/hooks/*.sample\n.vscode/\n.husky/\n*.git/**/hooks/\n*.git/**/config\n.bashrc\n.profile\n.zshrc\n*.pth\n"
                            "sitecustomize/__init__.py\nMakefile\npackage.json\nusercustomize.py\n.github/workflows/\n.github/actions/";

/* A receipt of these directories for user 0. Returns how it ended. */
static uint32_t receipt_with(const char *roots, const char *second, uint8_t flags) {
    FILE *file = tmpfile();
    REQUIRE(file);
    struct file_job job = {.stream = dup(fileno(file)), .cancelled = &cancelled, .shared = &shared};
    struct file_request request = {.flags = flags, .mode = 600000, .path = (const uint8_t *)roots, .path_length = (uint32_t)strlen(roots)};
    request.second = (const uint8_t *)second;
    request.second_length = (uint32_t)strlen(second);
    struct file_result result = {.bytes = answer};
    fclose(file);
    REQUIRE(receipt_run(&job, &request, &result) == 0 && result.length >= RECEIPT_RESULT_BYTES);
    answer_length = result.length;
    read_records(job.stream);
    return get32(answer + 12);
}

static uint32_t receipt(const char *roots, const char *skipped, uint8_t flags) {
    char second[2048];
    snprintf(second, sizeof second, "%s\n\n%s", skipped, rules);
    return receipt_with(roots, second, flags);
}

/* Asks for a receipt with these directories as those that were there when the session began. */
static uint32_t receipt_knowing(const char *known) {
    char second[4096];
    snprintf(second, sizeof second, "\n\n%s\n\n%s", rules, known);
    return receipt_with(root, second, 0);
}

static const struct record *record_of(const char *name) {
    for (size_t i = 0; i < found_count; i++)
        if (strcmp(found[i].path, in_root(name)) == 0) return &found[i];
    return NULL;
}

static uint16_t why(const char *name) {
    const struct record *record = record_of(name);
    return record ? record->why : 0;
}

/* Puts a file there, and the directories on the way to it. */
static void put_deep(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s", name);
    for (char *at = path; (at = strchr(at, '/')); *at++ = '/') {
        *at = 0;
        REQUIRE(mkdir(in_root(path), 0700) == 0 || errno == EEXIST);
    }
    put_file(name, "abc");
}

static void what_runs_by_itself_is_told_from_what_does_not(void) {
    static const char *const runs[] = {
        ".bashrc", "Makefile", "usercustomize.py", "sub/package.json", "sub/x.pth", ".pth", ".git/config", ".git/hooks/pre-commit", ".git/modules/m/hooks/h",
        ".github/workflows/a.yml", ".github/actions/b/c", ".vscode/deep/er/file", "deep/.husky/f", "b.git/hooks/pre-push", ".VSCode/other", "sub/sitecustomize/__init__.py",
    };
    static const char *const does_not[] = {
        "bashrc", "pth", "x.pth.txt", "config", "hooks/pre-commit", ".git/hooks/pre-commit.sample", ".git/other", "workflows/a.yml",
        "actions/b", "a.vscode/f", ".vscodex/f", "sub/plain", "x.vscode", ".github/plain", ".github/workflows.d/x", "__init__.py",
    };
    uint8_t digest[32];
    begin();
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) put_deep(runs[i]);
    for (size_t i = 0; i < sizeof does_not / sizeof *does_not; i++) put_deep(does_not[i]);
    REQUIRE(receipt(root, "", 0) == RECEIPT_FINISHED);
    digest_of("abc", 3, digest);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const struct record *record = record_of(runs[i]);
        struct stat st;
        REQUIRE(record && record->why == (RECEIPT_RUNS | RECEIPT_HASHED) && memcmp(record->digest, digest, 32) == 0);
        REQUIRE(lstat(in_root(runs[i]), &st) == 0 && record->mode == st.st_mode && record->uid == 0 && record->rule != 0 && record->size == 3);
    }
    for (size_t i = 0; i < sizeof does_not / sizeof *does_not; i++) REQUIRE(!record_of(does_not[i]));
    REQUIRE(why(".git") == RECEIPT_REPOSITORY && found_count == sizeof runs / sizeof *runs + 1);
}

static void a_link_runs_too_and_has_no_digest(void) {
    static const uint8_t nothing[32];
    begin();
    REQUIRE(symlink("/nowhere", in_root(".profile")) == 0 && mkfifo(in_root(".zshrc"), 0600) == 0 && mkdir(in_root("Makefile"), 0700) == 0);
    REQUIRE(receipt(root, "", 0) == RECEIPT_FINISHED && found_count == 1 && why(".profile") == RECEIPT_RUNS);
    REQUIRE(memcmp(found[0].digest, nothing, 32) == 0);
}

static void give_capabilities(const char *name) {
    static const uint8_t value[20] = {0, 0, 0, 2, 0, 4};
    REQUIRE(setxattr(in_root(name), "security.capability", value, sizeof value, 0) == 0);
}

static void put_special_files(void) {
    static const char *const names[] = {"setuid", "setgid", "capable", "quiet", "foreign", "plain"};
    begin();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) put_file(names[i], "abc");
    REQUIRE(chmod(in_root("setuid"), 04755) == 0 && chmod(in_root("setgid"), 02755) == 0 && chmod(in_root("capable"), 0755) == 0);
    give_capabilities("capable");
    give_capabilities("quiet");
    REQUIRE(chown(in_root("foreign"), 1234, 5678) == 0);
    REQUIRE(mknod(in_root("zero"), S_IFCHR | 0600, makedev(1, 5)) == 0 && mknod(in_root("block"), S_IFBLK | 0600, makedev(7, 200)) == 0);
    REQUIRE(mkdir(in_root("directory"), 0700) == 0 && chmod(in_root("directory"), 03755) == 0);
}

static void special_rights_devices_and_files_of_others_are_told(void) {
    put_special_files();
    REQUIRE(receipt(root, "", 0) == RECEIPT_FINISHED && found_count == 6);
    REQUIRE(why("setuid") == (RECEIPT_SETID | RECEIPT_HASHED) && why("setgid") == (RECEIPT_SETID | RECEIPT_HASHED));
    REQUIRE(why("capable") == (RECEIPT_CAPABILITIES | RECEIPT_HASHED) && why("foreign") == (RECEIPT_FOREIGN | RECEIPT_HASHED));
    REQUIRE(why("zero") == RECEIPT_DEVICE && why("block") == RECEIPT_DEVICE);
    REQUIRE(record_of("foreign")->uid == 1234);
    struct stat st;
    REQUIRE(stat(in_root("setuid"), &st) == 0 && (st.st_mode & 07777) == 04755 && access(in_root("zero"), F_OK) == 0);
}

static void they_are_taken_away_on_request(void) {
    struct stat st;
    put_special_files();
    REQUIRE(receipt(root, "", RECEIPT_STRIPS) == RECEIPT_FINISHED && found_count == 6);
    REQUIRE(why("setuid") == (RECEIPT_SETID | RECEIPT_HASHED | RECEIPT_STRIPPED) && why("setgid") == (RECEIPT_SETID | RECEIPT_HASHED | RECEIPT_STRIPPED));
    REQUIRE(why("capable") == (RECEIPT_CAPABILITIES | RECEIPT_HASHED | RECEIPT_STRIPPED) && why("foreign") == (RECEIPT_FOREIGN | RECEIPT_HASHED));
    REQUIRE(why("zero") == (RECEIPT_DEVICE | RECEIPT_STRIPPED) && why("block") == (RECEIPT_DEVICE | RECEIPT_STRIPPED));
    REQUIRE(lstat(in_root("zero"), &st) != 0 && lstat(in_root("block"), &st) != 0);
    REQUIRE(stat(in_root("setuid"), &st) == 0 && (st.st_mode & 07777) == 0755 && stat(in_root("setgid"), &st) == 0 && (st.st_mode & 07777) == 0755);
    REQUIRE(getxattr(in_root("capable"), "security.capability", NULL, 0) < 0 && getxattr(in_root("quiet"), "security.capability", NULL, 0) > 0);
    REQUIRE(stat(in_root("directory"), &st) == 0 && (st.st_mode & 07777) == 03755);
}

static void only_what_has_changed_since_the_session_began_is_told(void) {
    struct stat st;
    begin();
    put_file(".bashrc", "abc");
    REQUIRE(stat(in_root(".bashrc"), &st) == 0);
    static const struct {
        int seconds, nanoseconds;
        bool is_told;
    } starts[] = {{0, 0, true}, {0, 1, false}, {0, -1, true}, {-1, 1, true}, {1, -1, false}};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        shared.session_start = (struct timespec){st.st_ctim.tv_sec + starts[i].seconds, st.st_ctim.tv_nsec + starts[i].nanoseconds};
        REQUIRE(receipt(root, "", 0) == RECEIPT_FINISHED && found_count == starts[i].is_told);
    }
}

static void a_repository_is_told_whatever_it_is_called(void) {
    static const char *const names[] = {"bare/HEAD", "bare/objects/x", "bare/refs/x", "half/HEAD", "half/refs/x", "other/HEAD", "other/objects/x", "third/objects/x", "third/refs/x", "elsewhere/HEAD", "elsewhere/commondir", "headless/commondir"};
    begin();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) put_deep(names[i]);
    put_deep(".git/HEAD");
    put_deep(".git/objects/x");
    put_deep(".git/refs/x");
    REQUIRE(receipt(root, "", 0) == RECEIPT_FINISHED && found_count == 3);
    REQUIRE(why("bare") == RECEIPT_REPOSITORY && why(".git") == RECEIPT_REPOSITORY && why("elsewhere") == RECEIPT_REPOSITORY);
    begin_session_now();
    shared.session_start.tv_sec += 1000;
    REQUIRE(receipt(root, "", 0) == RECEIPT_FINISHED && found_count == 0);
}

static void several_directories_are_walked_and_some_are_left_out(void) {
    char roots[512], skipped[512];
    begin();
    put_deep("one/.bashrc");
    put_deep("one/kept/.bashrc");
    put_deep("one/kep/.bashrc");
    put_deep("two/.bashrc");
    put_deep("three/.bashrc");
    snprintf(roots, sizeof roots, "%s\n\n%s", in_root("one"), in_root("two"));
    REQUIRE(receipt(roots, "", 0) == RECEIPT_FINISHED && found_count == 4 && get64(answer) == 6);
    snprintf(skipped, sizeof skipped, "/nowhere\n%s\n%s", in_root("one/kept"), in_root("two/.bashrc"));
    REQUIRE(receipt(roots, skipped, 0) == RECEIPT_FINISHED && found_count == 2 && why("one/.bashrc") && why("one/kep/.bashrc"));
    snprintf(roots, sizeof roots, "%s\n%s", in_root("nowhere"), in_root("two"));
    REQUIRE(receipt(roots, "", 0) == RECEIPT_CLOSED && found_count == 1 && why("two/.bashrc"));
    REQUIRE(symlink("two", in_root("link")) == 0 && receipt(in_root("link"), "", 0) == RECEIPT_CLOSED && found_count == 0);
}

static void what_is_too_large_has_no_digest(void) {
    begin();
    put_file(".bashrc", "");
    put_file(".profile", "");
    REQUIRE(truncate(in_root(".bashrc"), HASH_FILE_MAX) == 0 && truncate(in_root(".profile"), (off_t)HASH_FILE_MAX + 1) == 0);
    REQUIRE(receipt(root, "", 0) == RECEIPT_FINISHED && why(".bashrc") == (RECEIPT_RUNS | RECEIPT_HASHED) && why(".profile") == RECEIPT_RUNS);
    REQUIRE(unlink(in_root(".profile")) == 0);
    for (unsigned i = 1; i <= HASH_ALL_MAX / HASH_FILE_MAX; i++) {
        char name[32];
        snprintf(name, sizeof name, "%u.pth", i);
        put_file(name, "");
        REQUIRE(truncate(in_root(name), HASH_FILE_MAX) == 0);
    }
    size_t hashed = 0;
    REQUIRE(receipt(root, "", 0) == RECEIPT_FINISHED && found_count == HASH_ALL_MAX / HASH_FILE_MAX + 1);
    for (size_t i = 0; i < found_count; i++) hashed += (found[i].why & RECEIPT_HASHED) != 0;
    REQUIRE(hashed == HASH_ALL_MAX / HASH_FILE_MAX);
}

static void there_are_so_many_records_and_the_others_are_counted(void) {
    begin();
    for (unsigned i = 0; i < RECEIPT_RECORDS_MAX + 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "%u.pth", i);
        put_file(name, "");
    }
    REQUIRE(receipt(root, "", 0) == RECEIPT_FINISHED && found_count == RECEIPT_RECORDS_MAX && get32(answer + 8) == 3);
    REQUIRE(get64(answer) == RECEIPT_RECORDS_MAX + 3);
    /* 9 is the rule about .pth, before which there are two other kinds, of special rights and of repositories. */
    REQUIRE(answer_length == RECEIPT_RESULT_BYTES + RECEIPT_COUNT_BYTES && get32(answer + 16) == 9 + 1 && get32(answer + 20) == RECEIPT_RECORDS_MAX + 3);
}

static void put_many(const char *format, unsigned count) {
    char name[64];
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof name, format, i);
        put_deep(name);
    }
}

/* Whatever a session makes many of, one of each kind is told, the first kinds first, and of each kind what lies highest. */
static void nothing_is_pushed_out_by_many_others(void) {
    begin();
    put_many("decoys/%u.pth", 700);
    put_many("decoys/%u/Makefile", 300);
    put_deep("deep/er/package.json");
    put_deep("Makefile");
    put_deep("top.pth");
    put_deep("deep/.vscode/tasks.json");
    put_deep("deep/.git/config");
    REQUIRE(receipt(root, "", 0) == RECEIPT_FINISHED && found_count == RECEIPT_RECORDS_MAX);
    REQUIRE(why("Makefile") && why("top.pth") && why("deep/.vscode/tasks.json") && why("deep/.git") && why("deep/.git/config") && why("deep/er/package.json"));
    REQUIRE(strcmp(found[0].path, in_root("deep/.git")) == 0 && strcmp(found[1].path, in_root("deep/.vscode/tasks.json")) == 0);
    REQUIRE(strcmp(found[3].path, in_root("top.pth")) == 0 && strcmp(found[RECEIPT_RECORDS_MAX - 1].path, in_root("deep/er/package.json")) == 0);
    REQUIRE(get32(answer + 8) == 1006 - RECEIPT_RECORDS_MAX && answer_length == RECEIPT_RESULT_BYTES + 2 * RECEIPT_COUNT_BYTES);
    REQUIRE(get32(answer + 16) == 10 && get32(answer + 20) == 701 && get32(answer + 24) == 12 && get32(answer + 28) == 301);
    for (size_t i = 1; i < found_count; i++) REQUIRE(found[i - 1].rule <= found[i].rule);
}

/* Files are hashed in the order in which they are told, so that many others leave digests for the first. */
static void the_first_kinds_are_hashed_first(void) {
    begin();
    for (unsigned i = 0; i < 2 * HASH_ALL_MAX / HASH_FILE_MAX; i++) {
        char name[32];
        snprintf(name, sizeof name, "%u.pth", i);
        put_file(name, "");
        REQUIRE(truncate(in_root(name), HASH_FILE_MAX) == 0);
    }
    put_deep("z/.vscode/tasks.json");
    REQUIRE(receipt(root, "", 0) == RECEIPT_FINISHED && why("z/.vscode/tasks.json") == (RECEIPT_RUNS | RECEIPT_HASHED));
}

static void a_link_may_stand_for_a_directory_of_a_telling_name(void) {
    begin();
    put_deep("build/tasks.json");
    put_deep("sub/x");
    static const char *const links[] = {".vscode", "sub/.husky", ".github", "sitecustomize", "x.git"};
    static const char *const others[] = {"vscode", "workflows", "sub/hooks"};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) REQUIRE(symlink("build", in_root(links[i])) == 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) REQUIRE(symlink("build", in_root(others[i])) == 0);
    REQUIRE(receipt(root, "", 0) == RECEIPT_FINISHED && found_count == sizeof links / sizeof *links);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) REQUIRE(why(links[i]) == RECEIPT_RUNS);
}

static char known[2048];

static void know(const char *directory) {
    struct stat st;
    size_t used = strlen(known);
    REQUIRE(lstat(in_root(directory), &st) == 0);
    snprintf(known + used, sizeof known - used, "%llu %s\n", (unsigned long long)st.st_ino, in_root(directory));
}

/* Waits until the clock that times of files are taken from has moved on. */
static void begin_session(void) {
    struct timespec pause = {.tv_nsec = 50000000};
    nanosleep(&pause, NULL);
    begin_session_now();
}

/* Files that have not changed count where their directory has another name, or lies elsewhere. */
static void what_a_renamed_directory_has_in_it_is_told(void) {
    begin();
    known[0] = 0;
    static const char *const files[] = {"build/tasks.json", ".vscode/old", "ci/workflows/x.yml", "up/sub/.husky/f", "swap/.vscode/mine", "evil/theirs", "kept/.vscode/x", "plain/x"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) put_deep(files[i]);
    static const char *const telling[] = {".vscode", "up/sub/.husky", "swap/.vscode", "kept/.vscode"};
    for (size_t i = 0; i < sizeof telling / sizeof *telling; i++) know(telling[i]);
    begin_session();
    REQUIRE(receipt_knowing(known) == RECEIPT_FINISHED && found_count == 0);
    REQUIRE(rename(in_root("ci"), in_root(".github")) == 0 && rename(in_root("up"), in_root("down")) == 0);
    REQUIRE(rename(in_root("swap/.vscode"), in_root("swap/away")) == 0 && rename(in_root("evil"), in_root("swap/.vscode")) == 0);
    REQUIRE(mkdir(in_root("new"), 0700) == 0 && rename(in_root("build"), in_root("new/.vscode")) == 0);
    /* Writing into one of them changes its times once more. */
    put_deep("new/.vscode/x");
    REQUIRE(unlink(in_root("new/.vscode/x")) == 0);
    put_deep("kept/.vscode/added");
    put_deep("plain/added");
    REQUIRE(receipt_knowing(known) == RECEIPT_FINISHED && found_count == 5);
    REQUIRE(why(".github/workflows/x.yml") && why("down/sub/.husky/f") && why("swap/.vscode/theirs") && why("new/.vscode/tasks.json"));
    REQUIRE(why("kept/.vscode/added"));
    shared.session_start = (struct timespec){0};
}

static void directories_of_telling_names_are_entered_first(void) {
    begin();
    for (int i = 0; i < 20; i++) {
        char format[32];
        snprintf(format, sizeof format, "decoy-%d/%%u", i);
        put_many(format, CLOCK_CHECK);
    }
    put_deep(".vscode/tasks.json");
    cancelled = 1;
    REQUIRE(receipt(root, "", 0) == RECEIPT_NO_TIME && get64(answer) == CLOCK_CHECK && found_count == 1 && why(".vscode/tasks.json"));
}

static void a_receipt_that_nobody_wants_or_that_nobody_reads_ends(void) {
    begin();
    for (int i = 0; i < CLOCK_CHECK - 1; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.pth", i);
        put_file(name, "");
    }
    cancelled = 1;
    REQUIRE(receipt(root, "", 0) == RECEIPT_FINISHED && get64(answer) == CLOCK_CHECK - 1);
    put_file("last.pth", "");
    REQUIRE(receipt(root, "", 0) == RECEIPT_NO_TIME && get64(answer) == CLOCK_CHECK);
    cancelled = 0;
    int ends[2];
    REQUIRE(pipe(ends) == 0 && close(ends[0]) == 0);
    struct file_job job = {.stream = ends[1], .cancelled = &cancelled, .shared = &shared};
    char second[2048];
    snprintf(second, sizeof second, "\n\n%s", rules);
    struct file_request request = {.mode = 600000, .path = (const uint8_t *)root, .path_length = (uint32_t)strlen(root), .second = (const uint8_t *)second};
    request.second_length = (uint32_t)strlen(second);
    struct file_result result = {.bytes = answer};
    REQUIRE(receipt_run(&job, &request, &result) == 0 && get32(answer + 12) == RECEIPT_NO_STREAM);
    /* Rights are taken away even if nobody can be told. */
    begin();
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        put_file(names[i], "x");
        REQUIRE(chmod(in_root(names[i]), 04755) == 0);
    }
    request.flags = RECEIPT_STRIPS;
    REQUIRE(receipt_run(&job, &request, &result) == 0 && get32(answer + 12) == RECEIPT_NO_STREAM);
    for (int i = 0; i < 3; i++) {
        struct stat st;
        REQUIRE(stat(in_root(names[i]), &st) == 0 && (st.st_mode & S_ISUID) == 0);
    }
    close(ends[1]);
}

static void too_many_rules_are_refused(void) {
    char second[RECEIPT_RULES_MAX * 2 + 16] = "\n\n";
    for (unsigned i = 0; i < RECEIPT_RULES_MAX; i++) strcat(second, "x\n");
    struct file_job job = {.stream = -1, .cancelled = &cancelled, .shared = &shared};
    struct file_request request = {.path = (const uint8_t *)"", .second = (const uint8_t *)second, .second_length = (uint32_t)strlen(second)};
    struct file_result result = {.bytes = answer};
    REQUIRE(receipt_run(&job, &request, &result) == 0);
    strcat(second, "x");
    request.second_length++;
    REQUIRE(receipt_run(&job, &request, &result) == EINVAL);
}

static void make_chain(const char *name, int depth) {
    REQUIRE(chdir(root) == 0);
    for (int i = 0; i < depth; i++) REQUIRE(mkdir(name, 0700) == 0 && chdir(name) == 0);
    int fd = open(".bashrc", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && close(fd) == 0 && chdir("/") == 0);
}

static void a_tree_is_walked_as_deep_as_it_may_be(void) {
    char name[128] = "";
    begin();
    make_chain("d", DEPTH_MAX);
    REQUIRE(receipt(root, "", 0) == RECEIPT_FINISHED && found_count == 1);
    begin();
    make_chain("d", DEPTH_MAX + 1);
    REQUIRE(receipt(root, "", 0) == RECEIPT_CLOSED && found_count == 0);
    /* A path that is too long is not followed either. */
    begin();
    memset(name, 'n', 100);
    make_chain(name, 45);
    put_file(".bashrc", "");
    REQUIRE(receipt(root, "", 0) == RECEIPT_CLOSED && found_count == 1);
}

static void replace_setuid(void) {
    REQUIRE(rename(in_root("setuid"), in_root("moved")) == 0);
    put_file("setuid", "other");
    REQUIRE(chmod(in_root("setuid"), 04711) == 0);
}

static void replace_by_fifo(void) { REQUIRE(unlink(in_root("setuid")) == 0 && mkfifo(in_root("setuid"), 0600) == 0); }
static void remove_it(void) { REQUIRE(unlink(in_root("setuid")) == 0); }

/* If another process replaces a file after it was judged, the new file is neither listed nor changed. */
static void only_the_file_that_was_looked_at_is_stripped(void) {
    void (*const ways[])(void) = {replace_setuid, replace_by_fifo, remove_it};
    struct stat st;
    for (int i = 0; i < 3; i++) {
        put_special_files();
        awaited_name = "setuid";
        before_open = ways[i];
        REQUIRE(receipt(root, "", RECEIPT_STRIPS) == RECEIPT_FINISHED && !before_open);
        REQUIRE((why("setuid") & ~RECEIPT_HASHED) == RECEIPT_SETID && (why("setuid") == RECEIPT_SETID) == (i > 0));
        if (i == 0) REQUIRE(stat(in_root("setuid"), &st) == 0 && (st.st_mode & 07777) == 04711);
        REQUIRE(why("setgid") & RECEIPT_STRIPPED && why("capable") & RECEIPT_STRIPPED);
    }
}

static void a_digest_is_of_every_byte(void) {
    static char text[200001];
    uint8_t digest[32];
    struct sha256 hash;
    memset(text, 't', sizeof text - 1);
    for (size_t i = 0; i < 3; i++) {
        const size_t size = i == 0 ? 1 : i == 1 ? 65537 : 200000;
        begin();
        text[size] = 0;
        put_file(".profile", text);
        text[size] = 't';
        sha256_begin(&hash);
        sha256_add(&hash, (const uint8_t *)text, size);
        sha256_end(&hash, digest);
        REQUIRE(receipt(root, "", 0) == RECEIPT_FINISHED && found_count == 1 && found[0].size == size && memcmp(found[0].digest, digest, 32) == 0);
    }
}

static void grow_profile(void) { REQUIRE(truncate(in_root(".profile"), (off_t)HASH_FILE_MAX + 1) == 0); }

static void a_file_that_grows_too_large_has_no_digest(void) {
    begin();
    put_file(".profile", "");
    REQUIRE(truncate(in_root(".profile"), HASH_FILE_MAX) == 0);
    after_read = grow_profile;
    REQUIRE(receipt(root, "", 0) == RECEIPT_FINISHED && why(".profile") == RECEIPT_RUNS && !after_read);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    signal(SIGPIPE, SIG_IGN);
    snprintf(root, sizeof root, "/tmp/brig-receipts-XXXXXX");
    REQUIRE(mkdtemp(root));
    RUN(what_runs_by_itself_is_told_from_what_does_not);
    RUN(a_link_runs_too_and_has_no_digest);
    RUN(special_rights_devices_and_files_of_others_are_told);
    RUN(they_are_taken_away_on_request);
    RUN(only_what_has_changed_since_the_session_began_is_told);
    RUN(a_repository_is_told_whatever_it_is_called);
    RUN(several_directories_are_walked_and_some_are_left_out);
    RUN(what_is_too_large_has_no_digest);
    RUN(there_are_so_many_records_and_the_others_are_counted);
    RUN(nothing_is_pushed_out_by_many_others);
    RUN(the_first_kinds_are_hashed_first);
    RUN(a_link_may_stand_for_a_directory_of_a_telling_name);
    RUN(what_a_renamed_directory_has_in_it_is_told);
    RUN(directories_of_telling_names_are_entered_first);
    RUN(too_many_rules_are_refused);
    RUN(a_receipt_that_nobody_wants_or_that_nobody_reads_ends);
    RUN(a_tree_is_walked_as_deep_as_it_may_be);
    RUN(only_the_file_that_was_looked_at_is_stripped);
    RUN(a_digest_is_of_every_byte);
    RUN(a_file_that_grows_too_large_has_no_digest);
    return 0;
}
