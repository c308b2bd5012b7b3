import { EventEmitter, once } from "node:events";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { readEnvironment } from "../../../src/lib/env.js";
import { connectEngine } from "../../../src/sandbox/docker/connect.js";
import type { Engine } from "../../../src/sandbox/docker/engine-types.js";
import { type BreakableSandbox, openBreakable } from "../../support/open-sandbox.js";
import { sandboxTest } from "../../support/sandbox.js";

/** An engine whose answers a test may hold back. */
async function ownEngine(): Promise<Engine> {
  return await connectEngine({ env: readEnvironment() });
}

sandboxTest.for([
  { how: "is ready", isHeld: false },
  { how: "has still to get its container", isHeld: true },
])(
  "a protected name stays so in a sandbox that begins while another one ends, and $how then",
  async ({ isHeld }, { directory }) => {
    const [workspace, brigHome] = [join(directory, "repo"), join(directory, "home")];
    await mkdir(workspace);
    const environment = { ...readEnvironment(), brigHome };
    const [first, second] = [await ownEngine(), await ownEngine()];
    await using ending = await openBreakable({ workspace, environment, engine: first });
    const moments = new EventEmitter();
    const create = second.createContainer.bind(second);
    second.createContainer = async (...request) => {
      const goesOn = once(moments, "ended");
      moments.emit("asked");
      if (isHeld) await goesOn;
      return await create(...request);
    };
    const list = first.listContainers.bind(first);
    const begun: Promise<BreakableSandbox>[] = [];
    first.listContainers = async (...request) => {
      const answer = await list(...request);
      if (begun.length > 0) return answer;
      const asked = once(moments, "asked");
      const beginning = openBreakable({ workspace, environment, engine: second });
      begun.push(beginning);
      await (isHeld ? asked : beginning);
      return answer;
    };
    await ending.close();
    moments.emit("ended");
    const [beginning] = begun;
    if (beginning === undefined) throw new Error("brig has not asked which placeholders others use");
    await using sandbox = await beginning;
    const tried = await sandbox.exec(["mkdir", ".git/hooks"]);
    expect(tried.stderr).toContain("Read-only file system");
    await sandbox.close();
    expect(await readdir(workspace)).toEqual([]);
    expect(await readdir(join(brigHome, "sandboxes"))).toEqual([]);
  },
);
