import type { StartedTestContainer } from "testcontainers";
import { freePort } from "./free-port.js";
import { testLabels } from "./test-run.js";

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
