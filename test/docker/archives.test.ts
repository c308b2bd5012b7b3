import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { describe, expect } from "vitest";
import { readTar, streamTar } from "../../src/sandbox/docker/calls/tar.js";
import { stopSandbox } from "../../src/sandbox/stopped-sandbox.js";
import { testEngine } from "../support/engine.js";
import { sandboxTest } from "../support/sandbox.js";
import { openBare } from "../support/task-attempts.js";

const MAKE = `
mkdir -p /app/d; printf hello > /app/d/file; chown 7:8 /app/d/file; chmod 640 /app/d/file
ln -s /etc/passwd /app/d/symbolic; ln /app/d/file /app/d/hard; mkfifo /app/d/fifo
rm /etc/issue; echo changed >> /etc/hostname.new; setsid sleep 1000 &`;

describe("a container whose processes have ended", () => {
  sandboxTest("still gives its files, of every kind, as the kernel knows them", async ({ directory }) => {
    await using opened = await openBare(directory);
    const { sandbox } = opened;
    await sandbox.exec(["bash", "-c", MAKE]);
    const { modifiedMs } = await sandbox.files.stat("/app/d");
    const { engine, containerId } = await stopSandbox(sandbox);
    expect(await engine.inspectContainer(containerId)).toMatchObject({ running: false });
    expect(await engine.statPath(containerId, "/app/d")).toEqual({
      isDirectory: true,
      mode: 0o755,
      modifiedMs,
    });
    expect(await engine.statPath(containerId, "/app/d/file")).toMatchObject({
      isDirectory: false,
      mode: 0o640,
    });
    expect(await engine.statPath(containerId, "/app/d/symbolic")).toMatchObject({
      isDirectory: false,
      mode: 0o777,
    });
    expect(await engine.statPath(containerId, "/tmp")).toMatchObject({ isDirectory: true, mode: 0o1777 });
    expect(await engine.statPath(containerId, "/nowhere")).toBeNull();
    const archive = await engine.readArchive(containerId, "/app/d");
    const found = [];
    for await (const { path, kind, uid, gid, mode, sizeBytes, content } of readTar(archive as Readable)) {
      const text = kind === "file" ? (await buffer(content)).toString() : "";
      found.push([path, kind, `${uid}:${gid}`, mode.toString(8), sizeBytes, text]);
    }
    const inode = found.find(([, kind]) => kind === "hard-link")?.[0];
    const names = found.map(([path, kind]) => [path, kind]);
    expect(names).toContainEqual(["d/symbolic", "symbolic-link"]);
    expect(names).toContainEqual(["d/fifo", "special"]);
    expect(["d/hard", "d/file"]).toContain(inode);
    expect(found.find(([, kind]) => kind === "file")?.slice(2)).toEqual(["7:8", "640", 5, "hello"]);
    expect(await engine.readArchive(containerId, "/nowhere")).toBeNull();
    const changes = await engine.containerChanges(containerId);
    expect(changes).toContainEqual({ path: "/etc/issue", kind: "deleted" });
    expect(changes).toContainEqual({ path: "/etc/hostname.new", kind: "added" });
    expect(changes).toContainEqual({ path: "/etc", kind: "changed" });
  });

  sandboxTest("starts again without any of them, and with what was copied into it", async ({ directory }) => {
    await using opened = await openBare(directory);
    await opened.sandbox.exec(["bash", "-c", "echo kept > /kept; setsid sleep 1000 >/dev/null 2>&1 &"]);
    const stopped = await stopSandbox(opened.sandbox);
    await expect(opened.sandbox.exec(["true"])).rejects.toMatchObject({ code: "sandbox.gone" });
    const header = { owner: { uid: 3, gid: 4 }, mode: 0o600, modifiedAt: new Date(1e12) };
    const tar = streamTar([
      { ...header, path: "new", mode: 0o755, kind: "directory" },
      { ...header, path: "new/link", kind: "link", target: "/kept" },
    ]);
    await stopped.engine.putArchive(stopped.containerId, "/", tar);
    await using again = await stopped.restart();
    const { stdout } = await again.exec([
      "sh",
      "-c",
      "cat /kept; readlink /new/link; stat -c %u:%g:%Y /new; pgrep -c sleep",
    ]);
    expect(stdout.split("\n")).toEqual(["kept", "/kept", "3:4:1000000000", "0", ""]);
    await again.close();
    expect(await (await testEngine()).inspectContainer(stopped.containerId)).toBeNull();
  });
});

sandboxTest("a path that is missing is told from a container that is gone", async ({ directory }) => {
  await using opened = await openBare(directory);
  const { engine, containerId } = await stopSandbox(opened.sandbox);
  expect(await engine.readArchive(containerId, "/missing")).toBeNull();
  expect(await engine.statPath(containerId, "/missing")).toBeNull();
  await engine.removeContainer(containerId);
  const gone = { code: "engine.failed", message: expect.stringContaining("it was removed") };
  await expect(engine.readArchive(containerId, "/app")).rejects.toMatchObject(gone);
  await expect(engine.statPath(containerId, "/app")).rejects.toMatchObject(gone);
});
