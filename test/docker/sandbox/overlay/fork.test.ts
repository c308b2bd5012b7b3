import { mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import type { Engine } from "../../../../src/sandbox/docker/engine-types.js";
import { Sandbox } from "../../../../src/sandbox/sandbox.js";
import { testEngine } from "../../../support/engine.js";
import { newSandboxTest, temporaryDirectory } from "../../../support/sandbox.js";

const it = newSandboxTest();

const state = `find . -mindepth 1 -not -path './.*' -printf '%P %y %m %U %s %T@ %l\\n' | sort; cat file; cat dir/deep/x`;
const changes = `mkdir -p dir/deep; echo x > dir/deep/x; echo agent > file; rm gone; ln -s nowhere link
chmod 600 dir/deep/x; chmod 2750 dir; head -c 200000 /dev/urandom > large; touch -d 2001-02-03 file
echo bytes > "$(printf 'a\\377')"; mkdir closed; echo y > closed/y; chmod 0 closed`;

describe("a fork", () => {
  it("has the state of the first, and both go on without each other", async ({ open }) => {
    await using directory = await temporaryDirectory();
    writeFileSync(join(directory.path, "file"), "host\n");
    writeFileSync(join(directory.path, "gone"), "host\n");
    const first = await open({ workspace: directory.path, workspaceKind: "overlay", env: { MINE: "kept" } });
    await first.exec(["sh", "-c", changes]);
    const before = await first.exec(["sh", "-c", state], { encoding: "buffer" });
    await using second = await first.fork();
    const forked = await second.exec(["sh", "-c", state], { encoding: "buffer" });
    expect(forked.output.toString("latin1")).toBe(before.output.toString("latin1"));
    expect((await second.exec(["sh", "-c", "echo $MINE"])).stdout).toBe("kept\n");
    expect(second.id).not.toBe(first.id);

    await first.exec(["sh", "-c", "echo of the first > mine"]);
    await second.exec(["sh", "-c", "echo of the second > file"]);
    expect((await first.exec(["cat", "file"])).stdout).toBe("agent\n");
    expect((await second.exec(["cat", "mine"])).exitCode).toBe(1);
    expect(readdirSync(directory.path).toSorted()).toEqual(["file", "gone"]);
  });

  it("has no directory of the host that was removed or replaced", async ({ open }) => {
    await using directory = await temporaryDirectory();
    for (const name of ["gone", "file", "link", "again", "empty"]) {
      mkdirSync(join(directory.path, name, "deep"), { recursive: true });
      if (name !== "empty") writeFileSync(join(directory.path, name, "deep", "x"), "host\n");
    }
    const first = await open({ workspace: directory.path, workspaceKind: "overlay" });
    const change = `rm -r gone empty file link again; echo new > file; ln -s file link; mkdir again; echo new > again/y`;
    await first.exec(["sh", "-c", change]);
    await using second = await first.fork();
    const list = ["sh", "-c", "find . -mindepth 1 -not -path './.*' | sort; cat link again/y"];
    expect((await second.exec(list)).stdout).toBe("./again\n./again/y\n./file\n./link\nnew\nnew\n");
    expect((await second.diff()).count).toBe((await first.diff()).count);
    expect(readdirSync(directory.path)).toHaveLength(5);
  });

  it("of a fork has the changes of both", async ({ open }) => {
    await using directory = await temporaryDirectory();
    const first = await open({ workspace: directory.path, workspaceKind: "overlay" });
    await first.exec(["sh", "-c", "echo 1 > one"]);
    await using second = await first.fork();
    await second.exec(["sh", "-c", "echo 2 > two; rm one"]);
    await using third = await second.fork();
    expect((await third.exec(["ls"])).stdout).toBe("two\n");
  });

  it("applies onto a host that is as the first one saw it, and no other", async ({ open }) => {
    await using directory = await temporaryDirectory();
    const file = join(directory.path, "file");
    writeFileSync(file, "host\n");
    const first = await open({ workspace: directory.path, workspaceKind: "overlay" });
    await first.exec(["sh", "-c", "echo agent > file"]);
    await using second = await first.fork();
    await using third = await first.fork();
    expect(await second.apply()).toMatchObject({ applied: ["file"], conflicts: [] });
    await third.exec(["sh", "-c", "echo another > file"]);
    expect((await third.apply()).conflicts.map(({ path }) => path)).toEqual(["file"]);
    expect(readFileSync(file, "utf8")).toBe("agent\n");
  });

  it("has everything, whatever names a command has made up, and applies the rest", async ({ open }) => {
    await using directory = await temporaryDirectory();
    const first = await open({ workspace: directory.path, workspaceKind: "overlay" });
    await first.exec(["sh", "-c", "mkdir .brig-stage-0; echo x > .brig-stage-0/0; echo kept > file"]);
    await using second = await first.fork();
    expect((await second.exec(["cat", "file"])).stdout).toBe("kept\n");
    const { applied, conflicts, skipped } = await first.apply();
    expect({ applied, conflicts }).toEqual({ applied: ["file"], conflicts: [] });
    expect(skipped.map(({ path }) => path)).toEqual([".brig-stage-0", ".brig-stage-0/0"]);
    expect(readdirSync(directory.path)).toEqual(["file"]);
  });

  it("is made of files that a command goes on writing to without an end", async ({ open }) => {
    await using directory = await temporaryDirectory();
    const first = await open({ workspace: directory.path, workspaceKind: "overlay" });
    const script = "head -c 200000 /dev/zero > grows; while :; do head -c 1000000 /dev/zero; done >> grows";
    const writer = await first.spawn(["sh", "-c", script], { stdin: "closed" });
    await expect
      .poll(async () => (await first.files.stat(`${directory.path}/grows`)).sizeBytes)
      .toBeGreaterThan(200_000);
    await using second = await first.fork();
    expect((await second.files.stat(`${directory.path}/grows`)).sizeBytes).toBeGreaterThan(200_000);
    expect((await first.exec(["true"])).exitCode).toBe(0);
    await writer.kill();
  });

  it("has what was deleted, what became another type, holes and all names of a file, but no FIFO", async ({
    open,
  }) => {
    await using directory = await temporaryDirectory();
    for (const path of ["gone/deep", "dir", "was-dir/deep"])
      mkdirSync(join(directory.path, path), { recursive: true });
    for (const path of ["gone/deep/x", "was-file", "was-dir/deep/x", "dir/x", "pipe"])
      writeFileSync(join(directory.path, path), "host\n");
    symlinkSync("dir", join(directory.path, "was-link"));
    const first = await open({ workspace: directory.path, workspaceKind: "overlay" });
    const script = `rm -r gone was-dir was-file was-link pipe; echo 1 > was-dir; mkdir was-file was-link
      echo 2 > was-file/in; echo 3 > was-link/in; mkfifo pipe; truncate -s 1T sparse; echo 4 > one; ln one two`;
    await first.exec(["sh", "-ec", script]);
    await using second = await first.fork();
    const look =
      "find . -mindepth 1 -not -path './.*' -printf '%P %y %s\\n' | grep -v ' d ' | sort; [ $(stat -c %b sparse) = 0 ]";
    const { stdout, exitCode } = await second.exec(["sh", "-c", look]);
    expect(stdout.split("\n")).toEqual([
      "dir/x f 5",
      "one f 2",
      "pipe f 5",
      "sparse f 1099511627776",
      "two f 2",
      "was-dir f 2",
      "was-file/in f 2",
      "was-link/in f 2",
      "",
    ]);
    expect(exitCode).toBe(0);
    expect(await second.changesSinceFork()).toEqual({ files: [], text: "" });
  });

  it("goes on when the first is closed, and then nothing is left of either", async ({ open }) => {
    await using directory = await temporaryDirectory();
    const first = await open({ workspace: directory.path, workspaceKind: "overlay" });
    await first.exec(["sh", "-c", "echo 1 > one"]);
    await using second = await first.fork();
    await using third = await second.fork();
    await first.close();
    await expect(first.fork()).rejects.toMatchObject({ code: "sandbox.gone" });
    await second.exec(["sh", "-c", "echo 2 > one"]);
    expect((await second.changesSinceFork()).files).toEqual([{ path: "one", kind: "update" }]);
    expect((await second.diff()).changes.map(({ path }) => path)).toEqual(["one"]);
    await second.close();
    expect((await third.exec(["cat", "one"])).stdout).toBe("1\n");
    await third.close();
    expect(await (await testEngine()).listVolumes([`brig.workspace=${directory.path}`])).toEqual([]);
  });

  it("protects what the first protects, and what is there instead by now", async ({ open }) => {
    await using directory = await temporaryDirectory();
    const git = join(directory.path, ".git");
    mkdirSync(git);
    writeFileSync(join(git, "config"), "");
    const first = await open({ workspace: directory.path, workspaceKind: "overlay" });
    renameSync(git, `${git}-old`);
    mkdirSync(git);
    writeFileSync(join(git, "new"), "");
    mkdirSync(join(directory.path, ".codex"));
    await using second = await first.fork();
    const { output } = await second.exec(["sh", "-c", "ls .git; touch .git/x .codex/x .agents/x"]);
    expect(output.match(/Read-only file system/g)).toHaveLength(3);
    expect(output).toMatch(/^new\n/);
  });

  it("is refused where its keeper sees another tree than the one to be forked", async ({ open }) => {
    await using directory = await temporaryDirectory();
    const real = await testEngine();
    let changes = false;
    const engine: Engine = {
      ...real,
      async createContainer(body, options) {
        const { Mounts = [] } = body.HostConfig;
        const merged = Mounts.find(({ Target }) => Target === "/merged");
        const other = Mounts.map((mount) =>
          mount.Target === "/from" && merged ? { ...merged, Target: "/from", ReadOnly: true } : mount,
        );
        const changed = { ...body, HostConfig: { ...body.HostConfig, Mounts: other } };
        return await real.createContainer(changes ? changed : body, options);
      },
    };
    const first = await open({ workspace: directory.path, workspaceKind: "overlay", engine });
    changes = true;
    await expect(first.fork()).rejects.toMatchObject({ code: "policy.not-enforced" });
    changes = false;
    await first.exec(["sh", "-c", "echo 1 > one"]);
    await using second = await first.fork();
    expect((await second.exec(["cat", "one"])).stdout).toBe("1\n");
    await second.close();
    await first.close();
    expect(await real.listVolumes([`brig.workspace=${directory.path}`])).toEqual([]);
  });

  it("leaves nothing when it is given up", async ({ open }) => {
    await using directory = await temporaryDirectory();
    const first = await open({ workspace: directory.path, workspaceKind: "overlay" });
    await first.exec(["sh", "-c", "echo 1 > one"]);
    const stop = new AbortController();
    const reason = new Error("given up");
    const forking = first.fork({ signal: stop.signal, onProgress: () => stop.abort(reason) });
    await expect(forking).rejects.toBe(reason);
    expect((await first.exec(["cat", "one"])).stdout).toBe("1\n");
    await first.close();
    expect(await (await testEngine()).listVolumes([`brig.workspace=${directory.path}`])).toEqual([]);
  });

  it("of a sandbox that is gone, or of one on the host's own files, is refused", async ({ open }) => {
    await using directory = await temporaryDirectory();
    const bound = await open({ workspace: directory.path });
    await expect(bound.fork()).rejects.toMatchObject({ code: "workspace.invalid" });
    const gone = await open({ workspace: directory.path, workspaceKind: "overlay" });
    await gone.close();
    await expect(gone.fork()).rejects.toMatchObject({ code: "sandbox.gone" });
  });
});

describe("a snapshot", () => {
  it("is the state of the moment, for any number of sandboxes", async ({ open }) => {
    await using directory = await temporaryDirectory();
    writeFileSync(join(directory.path, "file"), "host\n");
    const first = await open({ workspace: directory.path, workspaceKind: "overlay" });
    await first.exec(["sh", "-c", "echo then > file"]);
    const snapshot = await first.snapshot();
    await first.exec(["sh", "-c", "echo later > file"]);
    await first.close();
    for (const from of [snapshot, snapshot.id]) {
      await using again = await Sandbox.create({ from });
      expect((await again.exec(["cat", "file"])).stdout).toBe("then\n");
      expect((await again.diff()).changes.map(({ path }) => path)).toEqual(["file"]);
    }
    await snapshot.remove();
    await expect(Sandbox.create({ from: snapshot })).rejects.toMatchObject({ code: "snapshot.unknown" });
  });

  it("is refused when it would be too large, and leaves nothing", async ({ open }) => {
    await using directory = await temporaryDirectory();
    const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
    await sandbox.exec(["fallocate", "-l", "2M", "giant"]);
    const id = `giant-${process.pid}`;
    const refused = sandbox.snapshot({ id, maxBytes: 1024 * 1024 });
    await expect(refused).rejects.toMatchObject({
      code: "file.too-large",
      message: expect.stringContaining('"giant"'),
    });
    await expect(Sandbox.create({ from: id })).rejects.toMatchObject({ code: "snapshot.unknown" });
  });

  it("is of one workspace", async ({ open }) => {
    await using directory = await temporaryDirectory();
    const sandbox = await open({ workspace: directory.path, workspaceKind: "overlay" });
    const from = await sandbox.snapshot();
    await expect(Sandbox.create({ from, workspace: "/srv" })).rejects.toMatchObject({
      code: "usage.invalid",
    });
    await expect(Sandbox.create({ from, workspaceKind: "bind" })).rejects.toMatchObject({
      code: "usage.invalid",
    });
    await snapshotGone(from);
  });
});

async function snapshotGone(snapshot: { remove(): Promise<void> }) {
  await snapshot.remove();
  await snapshot.remove();
}
