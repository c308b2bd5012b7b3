import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createSocket, type Socket as DatagramSocket } from "node:dgram";
import { once } from "node:events";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { homedir, hostname, networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { TOOLBOX_PATH } from "../plan/create-body.js";

/** The program of the toolbox that makes the attempts. */
export const ATTEMPTS_PROGRAM = `${TOOLBOX_PATH}/attempts`;

/** Targets of the attempts: things of the host that no container may see or reach. */
export interface HostTargets extends AsyncDisposable {
  /** A directory outside of every workspace, with a file and somebody's keys. */
  readonly directory: string;
  /** The argument vector that makes the attempts in a container. */
  attempts(place: Place): string[];
}

interface Place {
  workspace: string;
  /** The places where files can be made; null if no list is wanted. */
  writable: readonly string[] | null;
  /** Names at the top of the workspace. */
  protectedNames: readonly string[];
  /** A program in the workspace that belongs to root and is setuid; undefined if there is none. */
  setuidProgram: string | undefined;
  /** The container's own first process, as its commands see it. Default: 1. */
  firstProcess?: number | undefined;
  /** Whether to try addresses of the internet: only where that is refused, so that nothing leaves this machine. */
  mayLeave: boolean;
  /** The memory and the number of processes that the sandbox is limited to. Null leaves out the attempt to start more. */
  memoryBytes: number;
  pids: number | null;
}

/** Limits of files that are larger are believed and not tried out. */
const MANY_FILES = 200_000;

/** Names, files, processes and listeners of the host, each with a random name that nothing else has. */
export async function openHostTargets(endpoint: string): Promise<HostTargets> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "brig-targets-")));
  const outside = join(directory, "file");
  await writeFile(outside, "only on the host");
  await mkdir(join(directory, ".ssh"));
  const name = randomBytes(8).toString("hex");
  const secret = [randomBytes(8).toString("hex"), randomBytes(8).toString("hex")] as const;
  // A single process, which waits for the end of its input: it also ends when this process is killed.
  const child = spawn("sh", ["-c", "read -r line", secret.join("")], {
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", BRIG_ATTEMPT_SECRET: secret.join("") },
    stdio: ["pipe", "ignore", "ignore"],
  });
  child.on("error", () => undefined);
  const servers = [closing(), closing()] as const;
  const [tcp, abstract] = servers;
  await listening(tcp, { port: 0, host: "0.0.0.0" });
  // Only Linux has such sockets.
  const hasAbstract = await listening(abstract, { path: `\0${name}` }).then(
    () => true,
    () => false,
  );
  const datagrams = await echo();
  const given = [
    ...pairs("secretBegin", [secret[0]]),
    ...pairs("secretEnd", [secret[1]]),
    ...pairs("engineSocket", engineSockets(endpoint)),
    ...pairs("hostName", [hostname()]),
    ...pairs("hostHome", [homedir(), directory]),
    ...pairs("outside", [outside]),
    ...pairs("abstractName", hasAbstract ? [name] : []),
    ...pairs("hostPort", [portOf(tcp)]),
    ...pairs("hostDatagramPort", [datagrams.address().port]),
    ...pairs("hostAddress", hostAddresses()),
    ...pairs("lookup", [`${name}.example.com`]),
    ...pairs("manyFiles", [MANY_FILES]),
  ];
  return {
    directory,
    attempts: (place) => [ATTEMPTS_PROGRAM, "all", ...given, ...placeArguments(place)],
    async [Symbol.asyncDispose]() {
      await ended(child);
      for (const server of servers.filter(({ listening }) => listening))
        await new Promise((resolve) => server.close(resolve));
      await new Promise<void>((resolve) => datagrams.close(resolve));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function placeArguments(place: Place): string[] {
  const { workspace, writable, protectedNames, setuidProgram, firstProcess = 1 } = place;
  return [
    ...pairs("workspace", [workspace]),
    // An empty list is one all the same: nothing may be writable.
    ...pairs("writable", writable === null ? [] : [...writable, ""]),
    ...pairs(
      "protected",
      protectedNames.map((name) => join(workspace, name)),
    ),
    ...pairs("setuidProgram", setuidProgram === undefined ? [] : [setuidProgram]),
    ...pairs("firstProcess", [firstProcess]),
    ...pairs("mayLeave", place.mayLeave ? [1] : []),
    ...pairs("memoryBytes", [place.memoryBytes]),
    ...pairs("manyProcesses", place.pids === null ? [] : [place.pids + 1]),
  ];
}

function pairs(name: string, values: readonly (string | number)[]): string[] {
  return values.map((value) => `${name}=${value}`);
}

function engineSockets(endpoint: string): string[] {
  const own = endpoint.startsWith("unix:") ? [new URL(endpoint).pathname] : [];
  return [...new Set([...own, "/var/run/docker.sock", "/run/docker.sock"])];
}

/** Takes connections, and ends them. */
function closing(): Server {
  return createServer((socket) => socket.on("error", () => undefined).end());
}

async function listening(server: Server, at: { port: number; host: string } | { path: string }) {
  server.listen(at);
  await once(server, "listening");
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function echo(): Promise<DatagramSocket> {
  const socket = createSocket("udp4");
  socket.on("message", (message, { port, address }) => socket.send(message, port, address));
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return socket;
}

/** Addresses of this machine by which a container could reach it over a bridge. */
function hostAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ family, internal }) => family === "IPv4" && !internal)
    .map(({ address }) => address);
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.pid === undefined) return;
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
}
