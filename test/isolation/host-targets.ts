import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createSocket, type Socket as DatagramSocket } from "node:dgram";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { homedir, hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import type { Engine } from "../../src/docker/engine-types.js";
import { program, temporaryDirectory } from "../support/sandbox.js";

/** What test/fixtures/isolation-probes.py looks for: things of the host that no container may see or reach. */
export interface HostTargets extends AsyncDisposable {
  /** A directory outside of every workspace, with a file and somebody's keys. */
  readonly directory: string;
  /** The argument vector that runs the probes in a container. */
  probes(place: Place): string[];
}

interface Place {
  workspace: string;
  /** Where files can be made. */
  writable: readonly string[];
  /** The container's own first process, as its commands see it. Default: 1. */
  firstProcess?: number;
  /** Whether to try addresses of the internet: only where that is refused, so that no test leaves this machine. */
  mayLeave: boolean;
}

/** Names, files, processes and listeners of the host, each with a random name that nothing else has. */
export async function hostTargets(engine: Engine): Promise<HostTargets> {
  const directory = await temporaryDirectory();
  const outside = join(directory.path, "file");
  await writeFile(outside, "only on the host");
  await mkdir(join(directory.path, ".ssh"));
  const name = randomBytes(8).toString("hex");
  const secret = [randomBytes(8).toString("hex"), randomBytes(8).toString("hex")] as const;
  const child = spawn("sh", ["-c", "sleep 900; :", secret.join("")], {
    env: { PATH: process.env.PATH, BRIG_PROBE_SECRET: secret.join("") },
    stdio: "ignore",
  });
  const tcp = await listening(createServer((socket) => socket.on("error", () => undefined).end()));
  const abstract = createServer((socket) => socket.on("error", () => undefined).end());
  await new Promise<void>((resolve) => abstract.listen(`\0${name}`, resolve));
  const datagrams = await echo();
  const engineSocket = new URL(engine.endpoint).pathname;
  const given = {
    secret,
    engineSockets: [...new Set([engineSocket, "/var/run/docker.sock", "/run/docker.sock"])],
    hostName: hostname(),
    hostHomes: [homedir(), directory.path],
    outside,
    abstractName: name,
    hostPort: portOf(tcp),
    hostDatagramPort: datagrams.address().port,
    hostAddresses: hostAddresses(),
    lookup: `${name}.example.com`,
    memoryBytes: 4096 * 2 ** 20,
    manyFiles: 200_000,
  };
  return {
    directory: directory.path,
    probes: ({ firstProcess = 1, ...place }) => {
      const setuidProgram = join(place.workspace, "setuid-id");
      return program(
        "isolation-probes.py",
        JSON.stringify({ ...given, ...place, firstProcess, setuidProgram }),
      );
    },
    async [Symbol.asyncDispose]() {
      await ended(child);
      for (const server of [tcp, abstract]) await new Promise((resolve) => server.close(resolve));
      await new Promise<void>((resolve) => datagrams.close(resolve));
      await directory[Symbol.asyncDispose]();
    },
  };
}

async function listening(server: Server): Promise<Server> {
  await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
  return server;
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return address.port;
}

async function echo(): Promise<DatagramSocket> {
  const socket = createSocket("udp4");
  socket.on("message", (message, { port, address }) => socket.send(message, port, address));
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return socket;
}

/** Of this machine, as a container could reach it over a bridge. */
function hostAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ family, internal }) => family === "IPv4" && !internal)
    .map(({ address }) => address);
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exit = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await exit;
}
