import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { readEnvironment } from "../../../../src/lib/env.js";
import { connectEngine } from "../../../../src/sandbox/docker/connect.js";
import { dockerContext, type EngineSource, engineSources } from "../../../../src/sandbox/docker/discovery.js";
import { unixEndpoint } from "../../../../src/sandbox/docker/endpoint.js";
import { type Answer, fakeEngine, reply } from "../../../support/fake-engine.js";

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "brig-home-"));
});
afterEach(async () => {
  await rm(home, { recursive: true, force: true });
});

const environment = (variables: Record<string, string> = {}) => readEnvironment({ HOME: home, ...variables });

function sourceOf(...paths: string[]): EngineSource {
  return async () =>
    paths.map((path) => ({ endpoint: unixEndpoint(path), origin: "a test", isChosen: false }));
}

async function addresses(variables: Record<string, string>): Promise<string[]> {
  const env = environment(variables);
  const lists = await Promise.all(engineSources.map((source) => source(env)));
  return lists.flat().map(({ endpoint }) => endpoint.address);
}

async function writeCertificates(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  for (const name of ["ca", "cert", "key"])
    await writeFile(join(directory, `${name}.pem`), `${name} of ${directory}`);
}

const certificatesOf = (directory: string) =>
  Object.fromEntries(["ca", "cert", "key"].map((name) => [name, Buffer.from(`${name} of ${directory}`)]));

const contextId = (name: string) => createHash("sha256").update(name).digest("hex");

async function selectContext(name: string, host: string): Promise<void> {
  const id = contextId(name);
  const meta = join(home, ".docker", "contexts", "meta", id);
  await mkdir(meta, { recursive: true });
  await writeFile(join(home, ".docker", "config.json"), JSON.stringify({ currentContext: name, auths: {} }));
  await writeFile(
    join(meta, "meta.json"),
    JSON.stringify({ Name: name, Endpoints: { docker: { Host: host } } }),
  );
}

describe("where engines are looked for", () => {
  it("tries the named engine, then Docker, rootless Docker, Docker Desktop and Podman", async () => {
    expect(await addresses({ DOCKER_HOST: "unix:///named.sock", XDG_RUNTIME_DIR: "/run/user/7" })).toEqual([
      "unix:///named.sock",
      "unix:///var/run/docker.sock",
      "unix:///run/user/7/docker.sock",
      `unix://${home}/.docker/run/docker.sock`,
      `unix://${home}/.docker/desktop/docker.sock`,
      "unix:///run/user/7/podman/podman.sock",
      "unix:///run/podman/podman.sock",
    ]);
  });

  it("leaves the user's sockets out where there is no runtime directory", async () => {
    expect(await addresses({})).not.toEqual(expect.arrayContaining([expect.stringContaining("undefined")]));
  });

  it("asks the Docker client's current context", async () => {
    await selectContext("colima", "unix:///colima.sock");
    expect(await dockerContext(environment())).toMatchObject([
      { endpoint: { address: "unix:///colima.sock" }, origin: "the Docker context colima", isChosen: true },
    ]);
  });

  it("uses TLS with the files of a context that has some", async () => {
    await selectContext("far", "tcp://engine.example");
    const directory = join(home, ".docker", "contexts", "tls", contextId("far"), "docker");
    expect(await dockerContext(environment())).toMatchObject([{ endpoint: { port: 2375, tls: null } }]);
    await writeCertificates(directory);
    expect(await dockerContext(environment())).toMatchObject([
      { endpoint: { port: 2376, tls: certificatesOf(directory) } },
    ]);
  });

  it("reads the client's configuration where DOCKER_CONFIG says", async () => {
    await selectContext("colima", "unix:///colima.sock");
    expect(await dockerContext(environment({ DOCKER_CONFIG: join(home, "none") }))).toEqual([]);
    const elsewhere = await dockerContext(
      readEnvironment({ HOME: "/proc/nonexistent", DOCKER_CONFIG: join(home, ".docker") }),
    );
    expect(elsewhere).toMatchObject([{ endpoint: { address: "unix:///colima.sock" } }]);
  });

  it("uses TLS for DOCKER_HOST only if DOCKER_TLS_VERIFY says so, with the files of DOCKER_CERT_PATH", async () => {
    const [usual, given] = [join(home, ".docker"), join(home, "certificates")];
    for (const directory of [usual, given]) await writeCertificates(directory);
    const tlsWith = async (variables: Record<string, string>) => {
      const env = environment({ DOCKER_HOST: "tcp://engine.example", ...variables });
      const [found] = (await engineSources[0]?.(env)) ?? [];
      expect(found).toMatchObject({ origin: "DOCKER_HOST", isChosen: true });
      return found?.endpoint.kind === "tcp" ? found.endpoint.tls : undefined;
    };
    expect(await tlsWith({})).toBe(null);
    expect(await tlsWith({ DOCKER_CERT_PATH: given })).toBe(null);
    expect(await tlsWith({ DOCKER_TLS_VERIFY: "1" })).toEqual(certificatesOf(usual));
    const chosen = { DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: given };
    expect(await tlsWith(chosen)).toEqual(certificatesOf(given));
  });

  it("names for each place whose engine it would be, and takes none of them for chosen", async () => {
    const lists = await Promise.all(
      engineSources.map((source) => source(environment({ XDG_RUNTIME_DIR: "/r" }))),
    );
    expect(lists.flat().map(({ origin, isChosen }) => [origin, isChosen])).toEqual([
      ["Docker", false],
      ["rootless Docker", false],
      ["Docker Desktop", false],
      ["Docker Desktop", false],
      ["Podman", false],
      ["Podman", false],
    ]);
  });

  it("lets DOCKER_CONTEXT name another context, and the default one", async () => {
    await selectContext("colima", "unix:///colima.sock");
    expect(await dockerContext(environment({ DOCKER_CONTEXT: "default" }))).toEqual([]);
    const absent = dockerContext(environment({ DOCKER_CONTEXT: "absent" }));
    await expect(absent).rejects.toMatchObject({
      code: "config.invalid",
      message: expect.stringMatching(/"absent"/),
    });
  });

  it("does not wait for a client configuration that is a FIFO", async () => {
    const fifo = join(home, ".docker", "config.json");
    await mkdir(join(home, ".docker"));
    execFileSync("mkfifo", [fifo]);
    // Ends the wait of a reader that does wait, which could not be interrupted otherwise.
    const writer = spawn("sh", ["-c", `echo '{"currentContext":"absent"}' > "$0"`, fifo], {
      stdio: "ignore",
    });
    onTestFinished(() => void writer.kill("SIGKILL"));
    expect(await dockerContext(environment())).toEqual([]);
  });

  it("ignores a client configuration that is not JSON", async () => {
    await mkdir(join(home, ".docker"));
    await writeFile(join(home, ".docker", "config.json"), "{");
    expect(await dockerContext(environment())).toEqual([]);
  });
});

describe("connectEngine", () => {
  it("takes the first engine that answers and asks no other", async () => {
    await using first = await fakeEngine();
    await using second = await fakeEngine();
    const sources = [
      sourceOf(join(home, "absent.sock")),
      sourceOf(first.socketPath),
      sourceOf(second.socketPath),
    ];
    const engine = await connectEngine({ env: environment(), sources });
    expect(engine.endpoint).toBe(first.address);
    expect(second.requests).toEqual([]);
  });

  it("passes over a socket whose owner hangs up", async () => {
    const stale = join(home, "stale.sock");
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(stale, resolve));
    await using alive = await fakeEngine();
    server.on("connection", (socket) => socket.destroy());
    const engine = await connectEngine({ env: environment(), sources: [sourceOf(stale, alive.socketPath)] });
    await new Promise((resolve) => server.close(resolve));
    expect(engine.endpoint).toBe(alive.address);
  });

  it("says all that was tried, and one command to run, when nothing answers", async () => {
    const paths = [join(home, "a.sock"), join(home, "b.sock")];
    const failure = connectEngine({ env: environment(), sources: [sourceOf(...paths)] });
    await expect(failure).rejects.toMatchObject({
      code: "engine.unreachable",
      hint: expect.stringMatching(/\w/),
    });
    for (const path of paths)
      await expect(failure).rejects.toThrow(`unix://${path} (a test): no such socket`);
  });

  it("never replaces an engine that DOCKER_HOST names", async () => {
    await using other = await fakeEngine();
    const env = environment({ DOCKER_HOST: `unix://${home}/absent.sock` });
    const failure = connectEngine({
      env,
      sources: [...engineSources.slice(0, 1), sourceOf(other.socketPath)],
    });
    await expect(failure).rejects.toMatchObject({
      code: "engine.unreachable",
      message: expect.stringMatching(/named by DOCKER_HOST/),
    });
    expect(other.requests).toEqual([]);
  });

  it("prefers a given address to everything", async () => {
    await using given = await fakeEngine();
    const env = environment({ DOCKER_HOST: "unix:///absent.sock" });
    expect((await connectEngine({ env, endpoint: given.address })).endpoint).toBe(given.address);
  });

  it("refuses an engine that is too old", async () => {
    await using old = await fakeEngine(undefined, { version: { Version: "19.03.15", ApiVersion: "1.40" } });
    await expect(connectEngine({ env: environment(), endpoint: old.address })).rejects.toMatchObject({
      code: "engine.too-old",
      message: expect.stringMatching(/19\.03\.15 has API 1\.40/),
      hint: expect.stringMatching(/20\.10/),
    });
  });

  it("does not take any server for an engine", async () => {
    // It answers everything, because an engine that failed is asked whether its disk is full.
    const answer: Answer = (_, response) => reply(response, 404, {});
    await using other = await fakeEngine(answer, { version: { ApiVersion: 7 } });
    await expect(connectEngine({ env: environment(), endpoint: other.address })).rejects.toMatchObject({
      code: "engine.failed",
      message: expect.stringMatching(/not like a container engine/),
    });
  });
});
