import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { readEnvironment } from "../../../../src/lib/env.js";
import { connectEngine } from "../../../../src/sandbox/docker/connect.js";
import { engineSources } from "../../../../src/sandbox/docker/discovery.js";
import { openSandbox } from "../../../../src/sandbox/open-sandbox.js";
import { resolveSettings } from "../../../../src/sandbox/settings/resolve-settings.js";
import { dockerDesktop } from "../../../support/docker-desktop.js";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(realpathSync(tmpdir()), "brig-desktop-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
});

const environment = (variables: Record<string, string> = {}) => readEnvironment({ HOME: home, ...variables });

describe("an engine that answers as Docker Desktop does", () => {
  it("is found by its context, and without one at its place in the home directory", async () => {
    await using desktop = await dockerDesktop(home);
    expect((await connectEngine({ env: environment() })).endpoint).toBe(desktop.address);
    const usual = engineSources.filter(({ name }) => name === "dockerDesktop");
    expect(usual).toHaveLength(1);
    const found = await connectEngine({ env: environment({ DOCKER_CONTEXT: "default" }), sources: usual });
    expect(found.endpoint).toBe(desktop.address);
    expect(await found.info()).toMatchObject({ operatingSystem: "Docker Desktop", arch: "arm64" });
  });

  it.each([
    [
      500,
      (path: string) =>
        `Mounts denied: \nThe path ${path} is not shared from the host and is not known to Docker.`,
    ],
    [500, (path: string) => `Mounts denied: approving ${path}: file does not exist`],
    [
      400,
      (path: string) =>
        `invalid mount config for type "bind": bind source path does not exist: /host_mnt${path}`,
    ],
    [
      500,
      (path: string) =>
        `error while creating mount source path '/host_mnt${path}': mkdir /host_mnt${path}: operation not permitted`,
    ],
  ])("refuses a workspace that is not shared with it, with advice: HTTP %d", async (status, wordsFor) => {
    const workspace = mkdtempSync(join(home, "project-"));
    const words = wordsFor(workspace);
    await using desktop = await dockerDesktop(home, { refusal: { status, words } });
    const env = environment({ BRIG_HOME: join(home, "brig") });
    const settings = await resolveSettings({ workspace, environment: env });
    const failure = openSandbox(settings, { engine: connectEngine({ env }) });
    await expect(failure).rejects.toMatchObject({
      code: "engine.failed",
      message: expect.stringContaining(words),
      hint: expect.stringMatching(/Docker Desktop under Settings, Resources, File sharing/),
    });
    expect(desktop.requests.some((one) => one.startsWith("POST /containers/create"))).toBe(true);
  });
});
