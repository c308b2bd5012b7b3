import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { StartedTestContainer } from "testcontainers";
import { packTar } from "../../src/docker/calls/tar.js";
import { isBrigError } from "../../src/errors.js";
import { testEngine } from "./engine.js";
import { freePort } from "./free-port.js";
import { testLabels } from "./test-run.js";

const IMAGE = "brig-test/network-clients:latest";
const context = fileURLToPath(new URL("../fixtures/network-clients/", import.meta.url));

/** The image of the clients and their servers; null, with a message, where their packages cannot be had. */
export async function networkClientsImage(): Promise<string | null> {
  const engine = await testEngine();
  const files = await Promise.all(
    (await readdir(context)).map(async (path) => ({
      path,
      mode: 0o755,
      content: await readFile(`${context}${path}`),
    })),
  );
  const before = await engine.inspectImage(IMAGE);
  try {
    await engine.buildImage(packTar(files), { tag: IMAGE });
  } catch (error) {
    if (!isBrigError(error, "image.build-failed")) throw error;
    process.stderr.write(`tests of real clients are skipped: ${error.message}\n`);
    return null;
  }
  const after = await engine.inspectImage(IMAGE);
  if (before !== null && before.id !== after?.id) await engine.removeImage(before.id).catch(() => undefined);
  return IMAGE;
}

export interface NetworkServers extends AsyncDisposable {
  /** Of 127.0.0.1. */
  readonly ports: { http: number; https: number; ssh: number; database: number };
}

/** Starts the servers on the network of this machine, in a container. */
export async function startNetworkServers(image: string): Promise<NetworkServers> {
  const [http, https, ssh, database] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
  ];
  process.env.TESTCONTAINERS_RYUK_DISABLED ??= "true";
  const { GenericContainer, Wait } = await import("testcontainers");
  const container: StartedTestContainer = await new GenericContainer(image)
    .withNetworkMode("host")
    .withLabels(testLabels())
    .withEnvironment({
      HTTP_PORT: String(http),
      HTTPS_PORT: String(https),
      SSH_PORT: String(ssh),
      DATABASE_PORT: String(database),
    })
    .withCommand(["serve"])
    .withWaitStrategy(Wait.forLogMessage(/^ready/))
    .withStartupTimeout(60_000)
    .start();
  return {
    ports: { http, https, ssh, database },
    async [Symbol.asyncDispose]() {
      await container.stop({ timeout: 0, remove: true, removeVolumes: true });
    },
  };
}
