import { execFileSync } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openPorts, recordPort } from "../../../../src/sandbox/network/port-records.js";
import { temporaryDirectory } from "../../../support/sandbox.js";
import { SmallDisk, whyNoSmallDisk } from "../../../support/small-disk.js";

const port = {
  sandbox: "8a2f1c7e-4b65-4a53-9f44-1a2b3c4d5e6f",
  session: "work",
  sandboxPort: 3000,
  port: 8080,
  url: "http://127.0.0.1:8080",
  command: "npm run dev",
  workingDirectory: "/repo",
};

it("a port is listed until it is forgotten", async () => {
  await using home = await temporaryDirectory();
  expect(await openPorts(home.path)).toEqual([]);
  const forget = await recordPort(home.path, port);
  await recordPort(home.path, { ...port, port: 22 });
  expect(await openPorts(home.path)).toEqual([
    { ...port, port: 22, pid: process.pid },
    { ...port, pid: process.pid },
  ]);
  await forget();
  await forget();
  expect((await openPorts(home.path)).map((one) => one.port)).toEqual([22]);
});

it("records that are damaged are left out, and those of dead processes removed", async () => {
  await using home = await temporaryDirectory();
  await recordPort(home.path, port);
  const [name = ""] = await readdir(join(home.path, "ports"));
  for (const [file, text] of [
    ["1.1.json", "{"],
    ["1.2.json", "{}"],
    ["notes.txt", ""],
  ] as const)
    await writeFile(join(home.path, "ports", file), text);
  await mkdir(join(home.path, "ports", "1.3.json"));
  const record = JSON.parse(await readFile(join(home.path, "ports", name), "utf8"));
  await writeFile(
    join(home.path, "ports", "4194305.9.json"),
    JSON.stringify({ ...record, owner: { ...record.owner, pid: 4_194_305 } }),
  );
  expect(await openPorts(home.path)).toEqual([{ ...port, pid: process.pid }]);
  expect(await readdir(join(home.path, "ports"))).not.toContain("4194305.9.json");
});

it.skipIf(whyNoSmallDisk !== null)(
  "ports are listed where records of dead processes cannot be removed [needs root, to mount a small disk]",
  async () => {
    await using disk = SmallDisk.mount(1);
    await recordPort(disk.path, port);
    const [name = ""] = await readdir(join(disk.path, "ports"));
    const record = JSON.parse(await readFile(join(disk.path, "ports", name), "utf8"));
    const ofDead = JSON.stringify({ ...record, owner: { ...record.owner, pid: 4_194_305 } });
    await writeFile(join(disk.path, "ports", "4194305.9.json"), ofDead);
    execFileSync("mount", ["-o", "remount,ro", disk.path]);
    expect(await openPorts(disk.path)).toEqual([{ ...port, pid: process.pid }]);
  },
);

it("a port works without a record where none can be written", async () => {
  await using home = await temporaryDirectory();
  await writeFile(join(home.path, "ports"), "");
  const forget = await recordPort(home.path, port);
  await forget();
});
