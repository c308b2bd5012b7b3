import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import Docker from "dockerode";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readEnvironment } from "../../src/lib/env.js";
import { connectEngine } from "../../src/sandbox/docker/connect.js";
import { Sandbox } from "../../src/sandbox/sandbox.js";
import { socketOf, testEngine } from "../support/engine.js";
import { testRuntime } from "../support/runtime-differences.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { missingForSsh, type SshServer, sshServer } from "../support/ssh-server.js";

const title = "an engine over ssh [needs sshd, ssh and docker's own program]";
describe.skipIf(missingForSsh !== null)(title, () => {
  let server: SshServer;
  beforeAll(async () => {
    server = await sshServer();
  });
  afterAll(async () => await server[Symbol.asyncDispose]());

  const socket = async () => socketOf(await testEngine());
  const connect = async (variables: Record<string, string>) =>
    await connectEngine({ env: readEnvironment({ HOME: "/nonexistent", ...variables }) });

  it("opens a sandbox, streams through it and removes it, with few logins", async () => {
    const before = server.logins();
    const engine = await connect({ DOCKER_HOST: `${server.endpoint}${await socket()}` });
    await using sandbox = await Sandbox.create({ workspaceKind: "none", runtime: testRuntime, engine });
    const { stdout } = await sandbox.exec(["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; cat"], {
      stdin: "the end",
    });
    expect(stdout.slice(-20)).toBe("xxxxxxxxxxxxxthe end");
    const id = sandbox.containerId;
    await sandbox.close();
    expect(await engine.inspectContainer(id)).toBe(null);
    expect(server.logins() - before).toBeLessThan(8);
  });

  it("is found by a Docker context", async () => {
    await using directory = await temporaryDirectory();
    const id = createHash("sha256").update("far").digest("hex");
    const meta = join(directory.path, "contexts/meta", id);
    await mkdir(meta, { recursive: true });
    await writeFile(
      join(meta, "meta.json"),
      JSON.stringify({ Name: "far", Endpoints: { docker: { Host: `${server.endpoint}${await socket()}` } } }),
    );
    const engine = await connect({ DOCKER_CONFIG: directory.path, DOCKER_CONTEXT: "far" });
    expect((await engine.info()).version).toBe((await (await testEngine()).info()).version);
  });

  it("that nobody waits for keeps no process alive", async () => {
    const program = `
      import { connectEngine } from "./src/sandbox/docker/connect.ts";
      import { readEnvironment } from "./src/lib/env.ts";
      console.log((await connectEngine({ env: readEnvironment() })).arch);`;
    const DOCKER_HOST = `${server.endpoint}${await socket()}`;
    const { stdout } = await execa(
      process.execPath,
      ["--import", "tsx", "--input-type=module", "-e", program],
      {
        env: { DOCKER_HOST },
        timeout: 30_000,
      },
    );
    expect(stdout).toBe((await testEngine()).arch);
  });

  it("is reached by a program's own dockerode too", async () => {
    const { username, hostname, port } = new URL(server.endpoint);
    const sshOptions = { privateKey: await readFile(server.clientKey, "utf8") };
    const docker = new Docker({ protocol: "ssh", host: hostname, port, username, sshOptions });
    await using sandbox = await Sandbox.create({ workspaceKind: "none", runtime: testRuntime, docker });
    expect((await sandbox.exec(["cat"], { stdin: "over ssh" })).stdout).toBe("over ssh");
    expect(sandbox.engine.endpoint).toBe(server.endpoint);
  });

  const refusal = async (address: string) => {
    const refused = await connect({ DOCKER_HOST: address }).catch((error: unknown) => error);
    await server.configure("");
    return refused;
  };

  it("whose key is not the known one is not spoken to", async () => {
    await server.configure("UserKnownHostsFile /dev/null");
    expect(await refusal(server.endpoint)).toMatchObject({
      code: "engine.unreachable",
      message: expect.stringMatching(
        /named by DOCKER_HOST, does not answer: .*Host key verification failed/s,
      ),
      hint: expect.stringContaining(
        "make sure that it is the right machine; then let ssh know its key, by: ssh -p ",
      ),
    });
    await server.configure(`UserKnownHostsFile ${server.wrongKnownHosts}`);
    expect(await refusal(server.endpoint)).toMatchObject({
      code: "engine.unreachable",
      message: expect.stringMatching(/Host key for .* has changed .*Host key verification failed\.$/),
      hint: expect.stringContaining("make sure that it is the right machine"),
    });
  });

  it("that refuses the login says so", async () => {
    await server.configure(`IdentityFile /dev/null\nIdentityAgent none\nPubkeyAuthentication no`);
    expect(await refusal(server.endpoint)).toMatchObject({
      code: "engine.unreachable",
      message: expect.stringMatching(/does not answer: .*Permission denied \(publickey[\w,-]*\)\.$/),
      hint: expect.stringContaining("ssh-add"),
    });
  });

  it("where nobody listens is refused, with ssh's own words", async () => {
    expect(await refusal("ssh://127.0.0.1:1")).toMatchObject({
      code: "engine.unreachable",
      message: expect.stringContaining("connect to host 127.0.0.1 port 1: Connection refused"),
      hint: "try: ssh -p 1 127.0.0.1 docker version",
    });
  });

  it("whose machine has no engine there says so", async () => {
    expect(await refusal(`${server.endpoint}/nonexistent.sock`)).toMatchObject({
      code: "engine.unreachable",
      message: expect.stringContaining("/nonexistent.sock"),
    });
  });
});
