import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { execa } from "execa";
import { extract } from "tar-stream";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { hashContext, packContext } from "../../../../../src/sandbox/images/dockerfile/build-plan.js";
import {
  type ContextLimits,
  defaultContextLimits,
  walkContext,
} from "../../../../../src/sandbox/images/dockerfile/context-files.js";

let directory: string;
const at = (path: string) => join(directory, path);

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "brig-context-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  await writeFile(at("Dockerfile"), "FROM scratch\n", { mode: 0o644 });
});

async function walk(limits: Partial<ContextLimits> = {}) {
  return await walkContext({ directory, dockerfile: "Dockerfile" }, { ...defaultContextLimits, ...limits });
}

const pathsIn = async () => (await walk()).map(({ path }) => path);

async function filesOf(replaced = new Map<string, Buffer>()) {
  return { directory, entries: await walk(), replaced };
}

const hashNow = async () => (await hashContext(await filesOf())).digest("hex");

/** Each entry of the archive as `type path mode size target`. */
async function entriesOf(tar: Readable): Promise<string[]> {
  const found: string[] = [];
  for await (const entry of Readable.from(tar).pipe(extract())) {
    const { type, name, mode = 0, linkname, uid, gid, mtime } = entry.header;
    expect([uid, gid, mtime?.getTime()]).toEqual([0, 0, 0]);
    found.push(`${type} ${name} ${mode.toString(8)} ${linkname ?? (await text(entry))}`);
    entry.resume();
  }
  return found;
}

describe("a build context", () => {
  it("is packed with modes, links as links, without owners and times", async () => {
    await mkdir(at("bin"), { mode: 0o750 });
    await chmod(at("bin"), 0o750);
    await writeFile(at("bin/tool"), "run", { mode: 0o755 });
    await chmod(at("bin/tool"), 0o4755);
    await symlink("/etc/shadow", at("link"));
    await symlink("nowhere", at("bin/dangling"));
    expect(await entriesOf(packContext(await filesOf()))).toEqual([
      "file Dockerfile 644 FROM scratch\n",
      "directory bin 750 ",
      "symlink bin/dangling 777 nowhere",
      "file bin/tool 4755 run",
      "symlink link 777 /etc/shadow",
    ]);
  });

  it("gives the same archive and hash for the same content", async () => {
    await mkdir(at("a"));
    await writeFile(at("a/b"), "content");
    const [archive, hash] = [await buffer(packContext(await filesOf())), await hashNow()];
    await utimes(at("a/b"), 1, 1);
    expect((await buffer(packContext(await filesOf()))).equals(archive)).toBe(true);
    expect(await hashNow()).toBe(hash);
  });

  it("has another hash for another content, mode, name, kind or target", async () => {
    const hashes = [await hashNow()];
    const changes = [
      () => writeFile(at("a"), "12", { mode: 0o644 }),
      () => writeFile(at("a"), "21"),
      () => chmod(at("a"), 0o600),
      () => rm(at("a")).then(() => writeFile(at("b"), "21", { mode: 0o600 })),
      () => rm(at("b")).then(() => symlink("x", at("b"))),
      () => rm(at("b")).then(() => symlink("y", at("b"))),
      () => rm(at("b")).then(() => mkdir(at("b"))),
    ];
    for (const change of changes) {
      await change();
      hashes.push(await hashNow());
    }
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  it("obeys the ignore file of the Dockerfile instead, if that has one", async () => {
    await writeFile(at(".dockerignore"), "a\n");
    await writeFile(at("Dockerfile.dockerignore"), "b\n!Docker*\n");
    for (const name of ["a", "b"]) await writeFile(at(name), "");
    expect(await pathsIn()).toEqual(["Dockerfile", "Dockerfile.dockerignore", "a"]);
  });

  it("leaves out what .dockerignore says, but not the Dockerfile", async () => {
    await writeFile(at(".dockerignore"), "*\n!kept/**/yes\n");
    for (const path of ["kept/deep", "gone"]) await mkdir(at(path), { recursive: true });
    for (const path of ["kept/no", "kept/deep/yes", "gone/yes"]) await writeFile(at(path), "");
    expect(await pathsIn()).toEqual([".dockerignore", "Dockerfile", "kept/deep/yes"]);
  });

  it("refuses FIFOs and sockets by name, unless they are left out", async () => {
    await execa("mkfifo", [at("pipe")]);
    await expect(walk()).rejects.toMatchObject({
      code: "image.build-failed",
      message: `${at("pipe")} is a FIFO, which no image can be built with`,
    });
    await writeFile(at(".dockerignore"), "pipe\nsocket\n");
    const server = createServer().listen(at("socket"));
    onTestFinished(() => void server.close());
    await expect
      .poll(() => execa("test", ["-S", at("socket")], { reject: false }))
      .toMatchObject({ exitCode: 0 });
    expect(await pathsIn()).toEqual([".dockerignore", "Dockerfile"]);
    await writeFile(at(".dockerignore"), "pipe\n");
    await expect(walk()).rejects.toThrow(`${at("socket")} is a socket`);
  });

  it("refuses a Dockerfile or a .dockerignore that is a link, or behind one", async () => {
    await mkdir(at("real"));
    await writeFile(at("real/Dockerfile"), "FROM scratch\n");
    await symlink("real/Dockerfile", at("linked"));
    await symlink("real", at("behind"));
    for (const dockerfile of ["linked", "behind/Dockerfile", "../Dockerfile", "absent"])
      await expect(
        walkContext({ directory, dockerfile }, defaultContextLimits),
        dockerfile,
      ).rejects.toMatchObject({
        code: "image.build-failed",
        message: expect.stringContaining("is no regular file of the build context"),
      });
    await symlink("/etc/passwd", at(".dockerignore"));
    await expect(walk()).rejects.toThrow(".dockerignore is not a regular file");
  });

  it("has limits, which name the file that is too much", async () => {
    await writeFile(at("z"), "");
    await truncate(at("z"), 2_000_000);
    await expect(walk({ maxBytes: 1_000_000 })).rejects.toMatchObject({
      code: "image.build-failed",
      message: expect.stringMatching(/has more than .* at z$/),
      hint: expect.stringContaining(".dockerignore"),
    });
    await expect(walk({ maxEntries: 1 })).rejects.toThrow("has more than 1 files at z");
  });

  it("is read no further than a little ahead of whoever takes it", async () => {
    await writeFile(at("large"), "");
    await truncate(at("large"), 300_000_000);
    const stream = packContext(await filesOf());
    let taken = 0;
    for await (const chunk of stream) {
      taken += (chunk as Buffer).length;
      if (taken > 10_000_000) break;
      expect(await positionIn(at("large"))).toBeLessThan(taken + 4_000_000);
    }
    await expect.poll(() => positionIn(at("large"))).toBe(null);
  });

  it("whose files change while they are sent ends the archive with their name", async () => {
    await writeFile(at("file"), "0123456789");
    for (const [content, words] of [
      ["0123", "changed while an image was built from it"],
      ["0123456789-", "changed while an image was built from it"],
      [null, "cannot be read: ENOENT"],
    ] as const) {
      const files = await filesOf();
      if (content === null) await rm(at("file"));
      else await writeFile(at("file"), content);
      await expect(buffer(packContext(files))).rejects.toMatchObject({
        code: "image.build-failed",
        message: `${at("file")} ${words}`,
      });
      await expect(hashContext(files)).rejects.toThrow(words);
      await writeFile(at("file"), "0123456789");
    }
  });

  it("never follows a link that has taken the place of a file", async () => {
    await writeFile(at("file"), "0123456789");
    const files = await filesOf();
    await rm(at("file"));
    await symlink("Dockerfile", at("file"));
    await expect(buffer(packContext(files))).rejects.toThrow("cannot be read: ELOOP");
  });

  it("is sent with the contents that replace those on disk", async () => {
    const files = await filesOf(new Map([["Dockerfile", Buffer.from("FROM other\n")]]));
    expect(await entriesOf(packContext(files))).toEqual(["file Dockerfile 644 FROM other\n"]);
    expect((await hashContext(files)).digest("hex")).not.toBe(await hashNow());
  });
});

/** How far this process has read the file; null if it does not have it open. */
async function positionIn(path: string): Promise<number | null> {
  for (const fd of await readdir("/proc/self/fd")) {
    if ((await readlink(`/proc/self/fd/${fd}`).catch(() => "")) !== path) continue;
    const about = await readFile(`/proc/self/fdinfo/${fd}`, "utf8").catch(() => "");
    return Number(/pos:\s*(\d+)/.exec(about)?.[1] ?? 0);
  }
  return null;
}
