import { randomBytes } from "node:crypto";
import { lstat, readFile as readHostFile, readlink, stat as statHost } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { promised } from "../../guarantees.js";
import { forEachHostUser } from "../../support/each-host-user.js";
import { heldDuring } from "../../support/garbage.js";
import { differs, titled } from "../../support/runtime-differences.js";
import { isWatched, sandboxTest } from "../../support/sandbox.js";

describe("reading", () => {
  sandboxTest("a file comes back byte by byte", async ({ sandbox, workspace }) => {
    for (const size of [0, 1, 61_439, 61_440, 61_441, 65_535, 65_536, 65_537, 300_000]) {
      const data = randomBytes(size);
      await sandbox.files.write(`${workspace}/data`, data);
      expect((await sandbox.files.read(`${workspace}/data`)).equals(data)).toBe(true);
      expect((await readHostFile(join(workspace, "data"))).equals(data)).toBe(true);
    }
  });

  sandboxTest("a range is read alone", async ({ sandbox, workspace }) => {
    await sandbox.files.write(`${workspace}/digits`, "0123456789");
    const read = async (offsetBytes: number, lengthBytes?: number) =>
      (await sandbox.files.read(`${workspace}/digits`, { offsetBytes, lengthBytes })).toString();
    expect(await read(3, 4)).toBe("3456");
    expect(await read(7)).toBe("789");
    expect(await read(8, 100)).toBe("89");
    expect(await read(10)).toBe("");
    expect(await read(1000, 5)).toBe("");
    expect(await read(2, 0)).toBe("");
    await expect(read(-1)).rejects.toMatchObject({ code: "file.failed" });
    await expect(read(0.5)).rejects.toMatchObject({ code: "file.failed" });
  });

  sandboxTest("200 MB go in and come back", async ({ sandbox, workspace }) => {
    const data = Buffer.alloc(200_000_000, randomBytes(1_000_003));
    await sandbox.files.write(`${workspace}/large`, data);
    expect((await sandbox.files.read(`${workspace}/large`)).equals(data)).toBe(true);
    await sandbox.files.remove(`${workspace}/large`);
  });

  sandboxTest("a sparse terabyte is refused at once, and read in ranges", async ({ sandbox, workspace }) => {
    const path = `${workspace}/sparse`;
    await sandbox.exec(["truncate", "-s", "1T", path]);
    // Not one byte of it is sent: all of them would take longer than any test may, and as many as fit would be seen here.
    const held = await heldDuring(async () => {
      await expect(sandbox.files.read(path)).rejects.toMatchObject({ code: "file.too-large" });
    });
    expect(held).toBeLessThan(16_000_000);
    const range = { offsetBytes: 2 ** 39, lengthBytes: 1000 };
    expect(await sandbox.files.read(path, range)).toEqual(Buffer.alloc(1000));
    expect((await sandbox.files.stat(path)).sizeBytes).toBe(2 ** 40);
  });

  sandboxTest.skipIf(differs("files.holes"))(
    titled("files.holes", "a hole is skipped on request, and counted"),
    async ({ sandbox, workspace }) => {
      const path = `${workspace}/sparse`;
      await sandbox.exec([
        "sh",
        "-c",
        `truncate -s 1G ${path} && printf data >>${path} && truncate -s 2G ${path}`,
      ]);
      for (const lengthBytes of [100, 100_000]) {
        const read = (offsetBytes: number) => sandbox.files.readPastHole(path, { offsetBytes, lengthBytes });
        const first = await read(1000);
        expect([first.holeBytes, first.data.toString("latin1", 0, 5)]).toEqual([2 ** 30 - 1000, "data\0"]);
        expect(await read(2 ** 30 + 2)).toMatchObject({ holeBytes: 0, data: { length: lengthBytes } });
        expect(await read(2 ** 31 - 10)).toEqual({ holeBytes: 10, data: Buffer.alloc(0) });
        expect(await read(2 ** 31)).toEqual({ holeBytes: 0, data: Buffer.alloc(0) });
      }
      const { holeBytes, data } = await sandbox.files.readPastHole("/proc/self/status", {
        offsetBytes: 0,
        lengthBytes: 1000,
      });
      expect([holeBytes, data.toString("latin1", 0, 5)]).toEqual([0, "Name:"]);
    },
  );

  sandboxTest("many at once are no reason to start many processes", async ({ sandbox, workspace }) => {
    await sandbox.files.write(`${workspace}/wanted`, "1");
    const nextPid = async () => Number((await sandbox.exec(["sh", "-c", "echo $$"])).stdout);
    const before = await nextPid();
    for (let round = 0; round < 4; round++)
      await Promise.all(Array.from({ length: 200 }, () => sandbox.files.read(`${workspace}/wanted`)));
    // A process for each would be 800. How many a busy machine needs depends on how late it answers each, which sanitizers delay.
    expect((await nextPid()) - before).toBeLessThan(isWatched ? 800 : 400);
  });

  sandboxTest("the limit is exact", async ({ sandbox, workspace }) => {
    await sandbox.files.write(`${workspace}/ten`, "0123456789");
    expect(await sandbox.files.read(`${workspace}/ten`, { maxBytes: 10 })).toHaveLength(10);
    await expect(sandbox.files.read(`${workspace}/ten`, { maxBytes: 9 })).rejects.toMatchObject({
      code: "file.too-large",
    });
    expect(await sandbox.files.read(`${workspace}/ten`, { maxBytes: 9, offsetBytes: 1 })).toHaveLength(9);
    // A file whose size the kernel does not tell is held to the limit all the same.
    await expect(sandbox.files.read("/proc/self/status", { maxBytes: 10 })).rejects.toMatchObject({
      code: "file.too-large",
    });
  });

  sandboxTest("what is no regular file is refused and never waited for", async ({ sandbox }) => {
    const script =
      "mkfifo /tmp/fifo; mkdir /tmp/directory; ln -s /tmp/fifo /tmp/to-fifo; " +
      "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('/tmp/socket')\"";
    await sandbox.exec(["sh", "-c", script]);
    const outcome = (path: string) =>
      sandbox.files.read(path).then(
        () => "read",
        (error) => error.code,
      );
    expect(
      await Promise.all(
        [
          "/tmp/fifo",
          "/tmp/to-fifo",
          "/tmp/socket",
          "/dev/zero",
          "/dev/tty",
          "/dev/ptmx",
          "/tmp/directory",
        ].map(outcome),
      ),
    ).toEqual([...Array.from({ length: 6 }, () => "file.not-regular"), "file.is-directory"]);
  });

  sandboxTest("a failure says what is wrong, and its cause names the errno", async ({ sandbox }) => {
    await sandbox.exec(["sh", "-c", "echo x > /tmp/locked; chmod 0 /tmp/locked; ln -s loop /tmp/loop"]);
    const failure = (path: string) =>
      sandbox.files.read(path).then(
        () => ["read"],
        (error) => [error.code, error.cause?.code],
      );
    expect(await failure("/tmp/missing")).toEqual(["file.not-found", "ENOENT"]);
    expect(await failure("/etc/passwd/below")).toEqual(["file.not-directory", "ENOTDIR"]);
    expect(await failure("/tmp/locked")).toEqual(["file.not-permitted", "EACCES"]);
    expect(await failure("/tmp/loop")).toEqual(["file.failed", "ELOOP"]);
    expect(await failure(`/tmp/${"x".repeat(256)}`)).toEqual(["file.failed", "ENAMETOOLONG"]);
    expect(await failure(`/${"x/".repeat(5000)}`)).toEqual(["file.failed", "ENAMETOOLONG"]);
    expect(await failure(`/${"x".repeat(5_000_000)}`)).toEqual(["exec.invalid", undefined]);
    expect(await failure("relative")).toEqual(["file.not-found", undefined]);
    expect(await failure("")).toEqual(["file.not-found", undefined]);
    expect(await failure("/tmp/a\0b")).toEqual(["file.not-found", undefined]);
  });

  sandboxTest("an abort ends it with the signal's reason", async ({ sandbox, workspace }) => {
    await sandbox.exec(["truncate", "-s", "1T", `${workspace}/sparse`]);
    const reason = new Error("enough");
    const call = sandbox.files.read(`${workspace}/sparse`, {
      lengthBytes: 10 ** 11,
      signal: abortAfter(100, reason),
    });
    await expect(call).rejects.toBe(reason);
    expect((await sandbox.files.read("/etc/hostname")).length).toBeGreaterThan(0);
  });
});

describe("writing", () => {
  sandboxTest(
    "a new file gets the mode it was given, an old one keeps its own",
    async ({ sandbox, workspace }) => {
      const path = `${workspace}/modes`;
      const mode = async () => (await sandbox.files.stat(path)).mode.toString(8);
      await sandbox.files.write(path, "1");
      expect(await mode()).toBe("644");
      await sandbox.exec(["chmod", "751", path]);
      await sandbox.files.write(path, "2", { mode: 0o600 });
      expect(await mode()).toBe("751");
      await sandbox.files.remove(path);
      await sandbox.files.write(path, "3", { mode: 0o4755 });
      expect(await mode()).toBe("755");
    },
  );

  sandboxTest("through a link it changes the file and keeps the link", async ({ sandbox, workspace }) => {
    await sandbox.exec([
      "sh",
      "-c",
      "mkdir -p deep; echo old > deep/file; ln -s deep/file one; ln -s one two; ln -s deep/absent dangling; ln -s deep dir",
    ]);
    await sandbox.files.write(`${workspace}/two`, "new");
    await sandbox.files.write(`${workspace}/dangling`, "made");
    await sandbox.files.write(`${workspace}/dir/beside`, "beside");
    expect(await readHostFile(join(workspace, "deep/file"), "utf8")).toBe("new");
    expect(await readHostFile(join(workspace, "deep/absent"), "utf8")).toBe("made");
    expect(await readHostFile(join(workspace, "deep/beside"), "utf8")).toBe("beside");
    expect(await readlink(join(workspace, "two"))).toBe("one");
    expect(await readlink(join(workspace, "dangling"))).toBe("deep/absent");
  });

  forEachHostUser((userTest) => {
    userTest("a link never leads out of the sandbox", async ({ sandbox, workspace, directory }) => {
      const outside = join(directory, "outside");
      await sandbox.exec(["ln", "-s", outside, `${workspace}/out`]);
      await expect(sandbox.files.write(`${workspace}/out`, "x")).rejects.toMatchObject({
        code: "file.not-found",
      });
      await expect(lstat(outside)).rejects.toMatchObject({ code: "ENOENT" });
      await sandbox.exec(["ln", "-s", "/etc/hostname", `${workspace}/host`]);
      expect((await sandbox.files.read(`${workspace}/host`)).toString()).toMatch(/^brig\n?$/);
      await expect(sandbox.files.write(`${workspace}/host`, "x")).rejects.toMatchObject({
        code: expect.stringMatching(/^file\.(?:read-only|not-permitted)$/),
      });
    });
  });

  forEachHostUser((userTest) => {
    userTest("through a link it is refused on request, as is all else on a path", async ({ sandbox }) => {
      await sandbox.exec([
        "sh",
        "-c",
        "cd /tmp; mkdir tree; echo kept > tree/file; ln -s tree way; ln -s file tree/link; ln -s nowhere tree/dangling",
      ]);
      const { files } = sandbox;
      const refuseSymlinks = true;
      const write = (path: string) => files.writeEach([{ path, data: "x" }], { refuseSymlinks });
      const refusals = await Promise.allSettled([
        ...["/tmp/way/file", "/tmp/tree/link"].flatMap((path) => [
          files.read(path, { refuseSymlinks }),
          files.read(path, { refuseSymlinks, lengthBytes: 100_000 }),
          files.stat(path, { refuseSymlinks }),
        ]),
        ...["/tmp/way/new", "/tmp/tree/link", "/tmp/tree/dangling"].flatMap((path) => [
          files.write(path, "x", { refuseSymlinks }),
          files.write(path, Buffer.alloc(100_000), { refuseSymlinks }),
          write(path).then(({ failure }) => Promise.reject(failure)),
        ]),
        files.mkdir("/tmp/way/new", { refuseSymlinks }),
        files.mkdir("/tmp/way/new/newer", { refuseSymlinks, recursive: true }),
        files.rename("/tmp/way/file", "/tmp/tree/new", { refuseSymlinks }),
        files.rename("/tmp/tree/file", "/tmp/way/new", { refuseSymlinks }),
        files.remove("/tmp/way/file", { refuseSymlinks }),
      ]);
      for (const refusal of refusals)
        expect(refusal).toMatchObject({
          status: "rejected",
          reason: {
            code: "file.symlink",
            message: expect.stringMatching(/: the path leads through a symbolic link$/),
            cause: { code: "ELOOP" },
          },
        });
      expect((await files.read("/tmp/tree/file", { refuseSymlinks })).toString()).toBe("kept\n");
      await files.mkdir("/tmp/tree/a/b", { recursive: true, refuseSymlinks });
      await files.rename("/tmp/tree/link", "/tmp/tree/a/b/link", { refuseSymlinks });
      await files.remove("/tmp/tree/dangling", { refuseSymlinks });
      expect(await write("/tmp/tree/a/b/new")).toEqual({ written: 1, failure: null });
      expect((await files.list("/tmp/tree/a/b")).map(({ name }) => name).sort()).toEqual(["link", "new"]);
      await files.remove("/tmp/tree/a", { recursive: true, refuseSymlinks });
      expect((await files.list("/tmp/tree")).map(({ name }) => name)).toEqual(["file"]);
    });
  });

  sandboxTest(promised("kept.files", "a reader never sees half a file"), async ({ sandbox, workspace }) => {
    const path = `${workspace}/replaced`;
    await sandbox.files.write(path, "a".repeat(500_000));
    const script = `
import sys, time
until, seen = time.time() + 1.5, set()
while time.time() < until or len(seen) < 2:
    data = open(sys.argv[1]).read()
    assert len(data) == 500_000 and len(set(data)) == 1, (len(data), set(data))
    seen.add(data[0])
print(len(seen))`;
    const reader = sandbox.exec(["python3", "-c", script, path]);
    let isReading = true;
    void reader.finally(() => {
      isReading = false;
    });
    for (let i = 0; isReading; i++) await sandbox.files.write(path, "ab"[i % 2]!.repeat(500_000));
    expect(await reader).toMatchObject({ exitCode: 0, stdout: "2\n" });
  });

  sandboxTest("many at once to one file leave one of them whole and nothing else", async ({ sandbox }) => {
    await sandbox.files.mkdir("/tmp/many");
    await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        sandbox.files.write("/tmp/many/file", String.fromCharCode(65 + (i % 26)).repeat(100_000)),
      ),
    );
    const text = (await sandbox.files.read("/tmp/many/file")).toString();
    expect(text).toBe(text.charAt(0).repeat(100_000));
    expect(await sandbox.files.list("/tmp/many")).toHaveLength(1);
  });

  sandboxTest("several in order end with the first that fails", async ({ sandbox }) => {
    await sandbox.files.mkdir("/tmp/each/directory", { recursive: true });
    const write = (name: string, data: string | Uint8Array) => ({ path: `/tmp/each/${name}`, data });
    const long = randomBytes(100_000);
    const all = [write("a", "1\0\n"), write("b", long), write("c", ""), write("a", "2"), write("d", "x")];
    expect(await sandbox.files.writeEach(all)).toEqual({ written: 5, failure: null });
    expect((await sandbox.files.read("/tmp/each/a")).toString()).toBe("2");
    expect((await sandbox.files.read("/tmp/each/b")).equals(long)).toBe(true);
    const some = [write("c", "new"), write("directory", "x"), write("d", "never")];
    expect(await sandbox.files.writeEach(some)).toEqual({
      written: 1,
      failure: expect.objectContaining({
        code: "file.is-directory",
        message: "cannot write /tmp/each/directory: is a directory",
      }),
    });
    expect((await sandbox.files.read("/tmp/each/c")).toString()).toBe("new");
    expect((await sandbox.files.read("/tmp/each/d")).toString()).toBe("x");
    expect(await sandbox.files.writeEach([])).toEqual({ written: 0, failure: null });
    const thousand = Array.from({ length: 1000 }, (_, i) => write(`n${i}`, `${i}`.padEnd(5000, ".")));
    expect(await sandbox.files.writeEach(thousand)).toEqual({ written: 1000, failure: null });
    expect((await sandbox.files.read("/tmp/each/n999")).toString()).toMatch(/^999\./);
  });

  sandboxTest("several in order end with an abort, and say how far they came", async ({ sandbox }) => {
    const reason = new Error("enough");
    const data = Buffer.alloc(30_000, "x");
    const files = Array.from({ length: 2000 }, (_, i) => ({ path: `/tmp/a${i}`, data }));
    const { written, failure } = await sandbox.files.writeEach(files, { signal: abortAfter(30, reason) });
    expect(failure).toBe(reason);
    expect(written).toBeLessThan(2000);
    const names = (await sandbox.files.list("/tmp"))
      .map(({ name }) => name)
      .filter((name) => /^a\d/.test(name));
    expect(names).toHaveLength(written);
    const early = await sandbox.files.writeEach(files, { signal: AbortSignal.abort(reason) });
    expect(early).toEqual({ written: 0, failure: reason });
  });

  sandboxTest("one that is cancelled leaves the old file and no other", async ({ sandbox }) => {
    await sandbox.files.mkdir("/tmp/cancelled");
    await sandbox.files.write("/tmp/cancelled/file", "old");
    const data = Buffer.alloc(150_000_000);
    for (const afterMs of [0, 5, 20, 60]) {
      const reason = new Error("enough");
      const call = sandbox.files.write("/tmp/cancelled/file", data, { signal: abortAfter(afterMs, reason) });
      await expect(call).rejects.toBe(reason);
    }
    expect((await sandbox.files.list("/tmp/cancelled")).map(({ name }) => name)).toEqual(["file"]);
    expect((await sandbox.files.read("/tmp/cancelled/file")).toString()).toBe("old");
  });

  sandboxTest("one that finds no space left leaves the old file and no other", async ({ sandbox }) => {
    await sandbox.files.mkdir("/run/full");
    await sandbox.files.write("/run/full/file", "old");
    const call = sandbox.files.write("/run/full/file", Buffer.alloc(40_000_000, "x"));
    await expect(call).rejects.toMatchObject({ code: "file.failed", cause: { code: "ENOSPC" } });
    expect((await sandbox.files.list("/run/full")).map(({ name }) => name)).toEqual(["file"]);
    expect((await sandbox.files.read("/run/full/file")).toString()).toBe("old");
  });

  forEachHostUser((userTest) => {
    userTest("is refused where a plain write would be", async ({ sandbox }) => {
      await sandbox.exec([
        "sh",
        "-c",
        "echo x > /tmp/kept; chmod 444 /tmp/kept; mkfifo /tmp/pipe; mkdir /tmp/is-dir",
      ]);
      const write = (path: string) =>
        sandbox.files.write(path, "y").then(
          () => "written",
          (error) => error.code,
        );
      expect(await write("/tmp/kept")).toBe("file.not-permitted");
      expect(await write("/tmp/pipe")).toBe("file.not-regular");
      expect(await write("/dev/null")).toBe("file.not-regular");
      expect(await write("/tmp/is-dir")).toBe("file.is-directory");
      expect(await write("/tmp/no/such/directory")).toBe("file.not-found");
      expect(await write("/etc/hosts-2")).toBe("file.read-only");
      expect(await write("/usr/bin/new")).toBe("file.read-only");
    });
  });

  sandboxTest("the caller's buffer is sent as it was", async ({ sandbox }) => {
    const data = Buffer.alloc(50_000, "a");
    const call = sandbox.files.write("/tmp/buffer", data.subarray(10, 40_010));
    await call;
    data.fill("b");
    expect((await sandbox.files.read("/tmp/buffer")).toString()).toBe("a".repeat(40_000));
  });
});

describe("stat and list", () => {
  sandboxTest("a file is described as the host sees it", async ({ sandbox, workspace }) => {
    await sandbox.files.write(`${workspace}/seen`, "12345", { mode: 0o640 });
    const inside = await sandbox.files.stat(`${workspace}/seen`);
    const outside = await statHost(join(workspace, "seen"));
    expect(inside).toMatchObject({ type: "file", sizeBytes: 5, mode: 0o640, linkTarget: null });
    expect([inside.uid, inside.gid]).toEqual([outside.uid, outside.gid]);
    expect(Math.abs(inside.modifiedMs - outside.mtimeMs)).toBeLessThan(1);
  });

  sandboxTest("every type is told", async ({ sandbox }) => {
    const script =
      "mkdir /tmp/types; cd /tmp/types; touch file; mkdir directory; ln -s 'to nowhere' symlink; mkfifo fifo; " +
      "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('socket')\"; ln file hard";
    await sandbox.exec(["sh", "-c", script]);
    const entries = await sandbox.files.list("/tmp/types");
    expect(Object.fromEntries(entries.map(({ name, type }) => [name, type]))).toEqual({
      file: "file",
      directory: "directory",
      symlink: "symlink",
      fifo: "fifo",
      socket: "socket",
      hard: "file",
    });
    expect((await sandbox.files.stat("/dev/null")).type).toBe("char-device");
    const link = await sandbox.files.stat("/tmp/types/symlink", { followSymlinks: false });
    expect(link).toMatchObject({ type: "symlink", linkTarget: "to nowhere" });
    await expect(sandbox.files.stat("/tmp/types/symlink")).rejects.toMatchObject({ code: "file.not-found" });
    const [one, other] = [
      await sandbox.files.stat("/tmp/types/file"),
      await sandbox.files.stat("/tmp/types/hard"),
    ];
    expect([one.dev, one.ino]).toEqual([other.dev, other.ino]);
  });

  sandboxTest("odd names arrive as they are", async ({ sandbox }) => {
    const names = [
      Buffer.from("new\nline"),
      Buffer.from("\x1b]0;title\x07"),
      Buffer.from([0x66, 0xff, 0xfe, 0x80]),
      Buffer.from("-rf"),
      Buffer.from("..x"),
      Buffer.from(" "),
      Buffer.from("漢字🙂"),
      Buffer.alloc(255, "n"),
    ];
    const script =
      "import os, sys\nos.mkdir('/tmp/odd')\nfor n in sys.argv[1:]: open(b'/tmp/odd/' + bytes.fromhex(n), 'w').close()";
    await sandbox.exec(["python3", "-c", script, ...names.map((name) => name.toString("hex"))]);
    const entries = await sandbox.files.list("/tmp/odd");
    const sorted = (all: Uint8Array[]) => all.map((name) => Buffer.from(name).toString("hex")).sort();
    expect(sorted(entries.map(({ nameBytes }) => nameBytes))).toEqual(sorted(names));
    for (const name of names.filter((one) => one.toString("utf8") === one.toString()).slice(0, 2))
      expect((await sandbox.files.stat(`/tmp/odd/${name.toString()}`)).type).toBe("file");
    expect(entries.map(({ name }) => name)).toContain("f\ufffd\ufffd\ufffd");
  });

  sandboxTest("an empty directory has no entry, and one of any size all of its own", async ({ sandbox }) => {
    for (const count of [0, 1, 230, 250, 300]) {
      const directory = `/tmp/sized-${count}`;
      const names = `for i in $(seq ${count}); do : > ${directory}/$(printf %0240d $i); done`;
      await sandbox.exec(["sh", "-c", `mkdir ${directory}; ${names}`]);
      const entries = await sandbox.files.list(directory);
      expect(new Set(entries.map(({ name }) => name)).size).toBe(count);
      let seen = 0;
      await sandbox.files.list(directory, { onEntries: (some) => (seen += some.length) });
      expect(seen).toBe(count);
    }
  });

  sandboxTest("20 000 entries are all there", async ({ sandbox }) => {
    const script = "mkdir /tmp/crowd; cd /tmp/crowd; seq -f 'entry-%06g' 20000 | xargs touch";
    await sandbox.exec(["sh", "-c", script]);
    const entries = await sandbox.files.list("/tmp/crowd");
    expect(new Set(entries.map(({ name }) => name)).size).toBe(20_000);
    await sandbox.files.remove("/tmp/crowd", { recursive: true });
  });

  sandboxTest("what is no directory cannot be listed", async ({ sandbox }) => {
    await expect(sandbox.files.list("/etc/passwd")).rejects.toMatchObject({ code: "file.not-directory" });
    await expect(sandbox.files.list("/nowhere")).rejects.toMatchObject({ code: "file.not-found" });
  });
});

describe("mkdir, rename and remove", () => {
  sandboxTest("directories are made with or without their parents", async ({ sandbox }) => {
    await sandbox.files.mkdir("/tmp/made");
    await expect(sandbox.files.mkdir("/tmp/made")).rejects.toMatchObject({ code: "file.exists" });
    await sandbox.files.mkdir("/tmp/made", { recursive: true });
    await expect(sandbox.files.mkdir("/tmp/made/a/b")).rejects.toMatchObject({ code: "file.not-found" });
    await sandbox.files.mkdir("/tmp/made/a/b/c", { recursive: true, mode: 0o700 });
    expect((await sandbox.files.stat("/tmp/made/a/b/c")).mode).toBe(0o700);
    await sandbox.files.write("/tmp/made/file", "");
    await expect(sandbox.files.mkdir("/tmp/made/file", { recursive: true })).rejects.toMatchObject({
      code: "file.exists",
    });
    await expect(sandbox.files.mkdir("/etc/new/deep", { recursive: true })).rejects.toMatchObject({
      code: "file.read-only",
    });
  });

  sandboxTest("a rename replaces what was there", async ({ sandbox }) => {
    await sandbox.files.write("/tmp/from", "moved");
    await sandbox.files.write("/tmp/to", "old");
    await sandbox.files.rename("/tmp/from", "/tmp/to");
    expect((await sandbox.files.read("/tmp/to")).toString()).toBe("moved");
    await expect(sandbox.files.stat("/tmp/from")).rejects.toMatchObject({ code: "file.not-found" });
    await expect(sandbox.files.rename("/tmp/to", "/run/to")).rejects.toMatchObject({
      code: "file.failed",
      cause: { code: "EXDEV" },
    });
    await expect(sandbox.files.rename("/tmp/to", "relative")).rejects.toMatchObject({
      code: "file.not-found",
    });
  });

  sandboxTest("a tree goes only when that was asked for, and no link is followed", async ({ sandbox }) => {
    await sandbox.exec([
      "sh",
      "-c",
      "mkdir -p /tmp/tree/a/b /tmp/beside; touch /tmp/tree/a/file /tmp/beside/kept; ln -s /tmp/beside /tmp/tree/a/link",
    ]);
    await expect(sandbox.files.remove("/tmp/tree")).rejects.toMatchObject({
      code: "file.failed",
      cause: { code: "ENOTEMPTY" },
    });
    await sandbox.files.remove("/tmp/tree", { recursive: true });
    await expect(sandbox.files.stat("/tmp/tree")).rejects.toMatchObject({ code: "file.not-found" });
    expect((await sandbox.files.stat("/tmp/beside/kept")).type).toBe("file");
  });

  sandboxTest("a link is removed, not what it points to", async ({ sandbox }) => {
    await sandbox.exec([
      "sh",
      "-c",
      "mkdir -p /tmp/pointed; touch /tmp/pointed/kept; ln -s pointed /tmp/pointer",
    ]);
    await sandbox.files.remove("/tmp/pointer", { recursive: true });
    expect((await sandbox.files.stat("/tmp/pointed/kept")).type).toBe("file");
  });

  sandboxTest("what is missing is an error unless that is fine", async ({ sandbox }) => {
    await expect(sandbox.files.remove("/tmp/missing")).rejects.toMatchObject({ code: "file.not-found" });
    await sandbox.files.remove("/tmp/missing", { force: true });
    await sandbox.files.remove("/tmp/missing", { force: true, recursive: true });
  });

  sandboxTest("a tree of 5 000 levels is removed", async ({ sandbox }) => {
    const script =
      "import os\nos.mkdir('/tmp/deep'); os.chdir('/tmp/deep')\nfor i in range(5000): os.mkdir('d'); os.chdir('d')\nopen('f', 'w')";
    expect((await sandbox.exec(["python3", "-c", script])).exitCode).toBe(0);
    expect(await sandbox.files.list(`/tmp/deep${"/d".repeat(2000)}`)).toHaveLength(1);
    await sandbox.files.remove("/tmp/deep", { recursive: true });
    await expect(sandbox.files.stat("/tmp/deep")).rejects.toMatchObject({ code: "file.not-found" });
  });

  forEachHostUser((userTest) => {
    userTest("a protected name stays, whatever is asked", async ({ sandbox, workspace }) => {
      for (const name of [".git", ".codex", ".agents", ".brig"]) {
        const failure = (call: Promise<unknown>) =>
          call.then(
            () => "done",
            (error) => error.cause?.code,
          );
        expect(await failure(sandbox.files.remove(`${workspace}/${name}`, { recursive: true }))).toBe(
          "EBUSY",
        );
        expect(await failure(sandbox.files.rename(`${workspace}/${name}`, `${workspace}/moved`))).toBe(
          "EBUSY",
        );
        expect(await failure(sandbox.files.write(`${workspace}/${name}/x`, "x"))).toMatch(
          /^(?:EROFS|EACCES)$/,
        );
      }
    });
  });
});

function abortAfter(milliseconds: number, reason: Error): AbortSignal {
  const controller = new AbortController();
  setTimeout(() => controller.abort(reason), milliseconds);
  return controller.signal;
}
