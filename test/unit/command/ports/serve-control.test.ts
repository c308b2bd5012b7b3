import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { askOwner } from "../../../../src/cli/ports/ask-owner.js";
import { openControlRecords } from "../../../../src/command/ports/control-records.js";
import type { SandboxPorts } from "../../../../src/command/ports/sandbox-ports.js";
import { serveControl } from "../../../../src/command/ports/serve-control.js";
import { BrigError } from "../../../../src/errors.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

const sandbox = { id: "8a2f1c7e-4b65-4a53-9f44-1a2b3c4d5e6f", workingDirectory: "/repo" };

/** A sandbox with one port, 3000: the protocol needs no container. */
const ports = {
  sandbox,
  label: { session: "work", command: "npm run dev" },
  open: async ({ sandboxPort }: { sandboxPort: number }) => {
    if (sandboxPort === 3000) return { port: 8080, url: "http://127.0.0.1:8080" };
    throw new BrigError("taken", { code: "sandbox.port-in-use", hint: "another one" });
  },
  close: async (port: number) => port === 8080,
} as unknown as SandboxPorts;
const { signal } = new AbortController();

it.each(["linux", "darwin"] as const)(
  "a sandbox can be asked for ports until it ends, on %s",
  async (platform) => {
    await using home = await temporaryDirectory();
    const { records, directory } = await openControlRecords(home.path);
    const control = await serveControl(ports, home.path, platform);
    const [owner] = await records.list();
    if (owner === undefined) throw new Error("there is no record");
    expect(owner).toMatchObject({
      sandbox: sandbox.id,
      session: "work",
      command: "npm run dev",
      pid: process.pid,
    });
    const files = (await readdir(directory)).filter((name) => name.endsWith(".json"));
    for (const name of files) expect((await stat(join(directory, name))).mode & 0o777).toBe(0o600);
    const open = { kind: "open", sandboxPort: 3000, hostPort: 0 } as const;
    expect(await askOwner(owner, open, signal)).toEqual({
      kind: "opened",
      port: 8080,
      url: "http://127.0.0.1:8080",
    });
    await expect(askOwner(owner, { ...open, sandboxPort: 1 }, signal)).rejects.toMatchObject({
      ...{ code: "sandbox.port-in-use", message: "taken", hint: "another one" },
    });
    expect(await askOwner(owner, { kind: "close", hostPort: 8080 }, signal)).toEqual({ kind: "closed" });
    expect(await askOwner(owner, { kind: "close", hostPort: 1 }, signal)).toEqual({ kind: "unknown" });
    await expect(askOwner({ ...owner, token: "0".repeat(64) }, open, signal)).rejects.toMatchObject({
      code: "sandbox.gone",
    });
    const aborted = AbortSignal.abort(new Error("ctrl-C"));
    await expect(askOwner(owner, open, aborted)).rejects.toThrow("ctrl-C");
    await control[Symbol.asyncDispose]();
    await expect(askOwner(owner, open, signal)).rejects.toMatchObject({ code: "sandbox.gone" });
    expect(await readdir(directory)).toEqual([]);
  },
);

it("a record that leads elsewhere is left out", async () => {
  await using home = await temporaryDirectory();
  const { records, directory } = await openControlRecords(home.path);
  await using _ = await serveControl(ports, home.path);
  const [name = ""] = await readdir(directory);
  const record = JSON.parse(await readFile(join(directory, name), "utf8"));
  for (const [at, address] of ["relative", "\0other", "", "/run/x\0y"].entries())
    await writeFile(join(directory, `${process.pid}.${at}.json`), JSON.stringify({ ...record, address }));
  expect(await records.list()).toHaveLength(1);
});
