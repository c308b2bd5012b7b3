import { randomUUID } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { packTar } from "../../../../src/sandbox/docker/calls/tar.js";
import { trustInNss } from "../../../../src/sandbox/network/egress/trust.js";
import type { CommandContext } from "../../../../src/sandbox/process/command.js";
import { testEngine } from "../../../support/engine.js";
import { openBreakable } from "../../../support/open-sandbox.js";
import { testRuntime } from "../../../support/runtime-differences.js";
import { sandboxTest, temporaryDirectory } from "../../../support/sandbox.js";

/** Longer than brig waits for the tool. It says that it runs in each directory of the host that it sees. */
const endless = '#!/bin/sh\nfor one in /tmp/*/; do touch "$one/began"; done\nexec sleep 1000\n';
const image = `brig-test/endless-certutil:${randomUUID()}`;

const stopped = () => new BrigError("enough", { code: "aborted" });

describe("an image whose certutil does not end", () => {
  beforeAll(async () => {
    const dockerfile = "FROM brig/base:latest\nCOPY certutil /usr/local/bin/certutil\n";
    const files = [
      { path: "Dockerfile", mode: 0o644, content: Buffer.from(dockerfile) },
      { path: "certutil", mode: 0o755, content: Buffer.from(endless) },
    ];
    await (await testEngine()).buildImage(packTar(files), { tag: image, hasNetwork: false });
  });
  afterAll(async () => {
    await (await testEngine()).removeImage(image);
  });

  sandboxTest("holds up no start that is interrupted, and leaves no container", async () => {
    await using directory = await temporaryDirectory();
    const stop = new AbortController();
    const opening = openBreakable({
      ...{ image, runtime: testRuntime, workspace: directory.path, signal: stop.signal },
      network: "allowlist:a.example",
      egress: { secrets: { API_KEY: { hosts: ["a.example"], value: "secret-of-the-host" } } },
    });
    opening.catch(() => undefined);
    await expect.poll(() => existsSync(join(directory.path, "began"))).toBe(true);
    const reason = stopped();
    stop.abort(reason);
    await expect(opening).rejects.toBe(reason);
    const left = await (await testEngine()).listContainers([`brig.owner-pid=${process.pid}`]);
    expect(left.filter((one) => one.image === image)).toEqual([]);
  });

  sandboxTest("is ended when its caller stops waiting", async ({ open, directory }) => {
    const sandbox = await open({ workspace: directory });
    const bin = join(directory, "bin");
    mkdirSync(bin);
    writeFileSync(join(bin, "certutil"), endless);
    chmodSync(join(bin, "certutil"), 0o755);
    const context: CommandContext = { link: sandbox.link, cwd: "/", env: {}, onStuck: () => undefined };
    const plan = {
      imageEnvironment: { PATH: `${bin}:/bin:/usr/bin` },
      home: "/tmp",
      volumes: [],
      mounts: [],
    };
    const stop = new AbortController();
    const trusting = trustInNss(context, { ...plan, signal: stop.signal });
    trusting.catch(() => undefined);
    await expect.poll(() => existsSync(join(directory, "began"))).toBe(true);
    const reason = stopped();
    stop.abort(reason);
    await expect(trusting).rejects.toBe(reason);
    expect((await sandbox.exec(["pgrep", "-f", "sleep 1000"])).stdout).toBe("");
  });
});
