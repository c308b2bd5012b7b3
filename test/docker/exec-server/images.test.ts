import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packTar } from "../../../src/sandbox/docker/calls/tar.js";
import { testEngine } from "../../support/engine.js";
import { openStdioClient, sandboxOf, startParams, uri } from "../../support/exec-client.js";
import { type TemporaryDirectory, temporaryDirectory } from "../../support/sandbox.js";

const tags: string[] = [];
let directory: TemporaryDirectory;

beforeAll(async () => {
  directory = await temporaryDirectory();
});
afterAll(async () => {
  const engine = await testEngine();
  for (const tag of tags) await engine.removeImage(tag);
  await directory[Symbol.asyncDispose]();
});

/** An image as brig/base without these programs. */
async function imageWithout(...paths: string[]): Promise<string> {
  const tag = `brig-test/without:${randomBytes(6).toString("hex")}`;
  const dockerfile = Buffer.from(`FROM brig/base\nRUN rm -f ${paths.join(" ")}\n`);
  tags.push(tag);
  const engine = await testEngine();
  await engine.buildImage(packTar([{ path: "Dockerfile", mode: 0o644, content: dockerfile }]), { tag });
  return tag;
}

const bash = ["/bin/bash", "/usr/bin/bash"];

describe("an image", () => {
  it("with bash: that is the shell", async () => {
    await using served = await openStdioClient(directory.path);
    const { environmentInfo } = await served.client.call("initialize", { clientName: "test" });
    expect(environmentInfo).toMatchObject({ shell: { name: "bash", path: "/bin/bash" } });
    expect(await served.client.call("environment/info")).toEqual(environmentInfo);
    expect(await served.client.call("environment/status")).toEqual({ status: "ready" });
  });

  it("with sh alone: that is the shell, and commands run in it", async () => {
    await using served = await openStdioClient(directory.path, { image: await imageWithout(...bash) });
    const { environmentInfo } = await served.client.call("initialize", { clientName: "test" });
    expect(environmentInfo).toMatchObject({ shell: { name: "sh", path: "/bin/sh" } });
    const argv = ["/bin/sh", "-lc", "echo from sh"];
    const start = startParams("a", "", { workspace: directory.path, argv });
    await served.client.call("process/start", start);
    expect(await served.client.closed("a")).toMatchObject({ exitCode: 0, output: "from sh\n" });
  });

  it("without dd takes no blocks, and says so; whole files it takes", async () => {
    const image = await imageWithout("/bin/dd", "/usr/bin/dd");
    await using served = await openStdioClient(directory.path, { image });
    await served.client.initialize();
    const sandbox = sandboxOf("workspace-write", directory.path);
    const path = uri(`${directory.path}/w`);
    await served.client.call("fs/open", { handleId: "w", path, mode: "replace", sandbox });
    const block = { handleId: "w", offset: 0, chunk: btoa("x") };
    expect((await served.client.ask("fs/writeBlock", block)).error?.message).toMatch(/the image has no dd/);
    await served.client.call("fs/writeFile", { path, dataBase64: btoa("x"), sandbox });
  });

  it("that there is not: the usual shell stands in, and the first file says what is wrong", async () => {
    await using served = await openStdioClient(directory.path, { image: "brig-test/none:none" });
    const { environmentInfo } = await served.client.call("initialize", { clientName: "test" });
    expect(environmentInfo).toMatchObject({ shell: { path: "/bin/bash" } });
    const { error } = await served.client.ask("fs/getMetadata", { path: uri(directory.path) });
    expect(error?.message).toMatch(/brig-test\/none:none/);
  });
});
