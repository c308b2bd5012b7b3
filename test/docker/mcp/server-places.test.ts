import { execFile } from "node:child_process";
import { once } from "node:events";
import { cpSync, realpathSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterEach, describe, expect, vi } from "vitest";
import type { ServerPlace, ServerProcess } from "../../../src/agent/mcp/client/server-process.js";
import { type LaunchOptions, serverLauncher } from "../../../src/agent/mcp/launch/launch-servers.js";
import { readEnvironment } from "../../../src/lib/env.js";
import type { Sandbox } from "../../../src/sandbox/sandbox.js";
import { resolveSettings } from "../../../src/sandbox/settings/resolve-settings.js";
import { cacheVolumeName } from "../../../src/sandbox/volumes/cache-volume.js";
import { forEachHostUser } from "../../support/each-host-user.js";
import { testEngine } from "../../support/engine.js";
import { giveToHostUser } from "../../support/host-users.js";
import { program, sandboxTest } from "../../support/sandbox.js";
import { testProgram } from "../../support/test-program.js";
import { isOurs } from "../../support/test-run.js";

const run = promisify(execFile);
const own: ServerPlace = { kind: "own", image: null, network: "none" };
const everything = await testProgram("server-everything");

/** How a test starts a server. The volume of its cache is removed at the end of the test. */
interface Start {
  directory: string;
  place?: ServerPlace;
  mode?: "read-only" | "workspace-write" | "danger-full-access";
  sandbox?: Promise<Sandbox>;
  env?: Record<string, string>;
  name?: string;
  warnings?: unknown[];
  receipts?: unknown[];
}

const caches = new Set<string>();

afterEach(async () => {
  const engine = await testEngine();
  for (const volume of caches) await engine.removeVolume(volume);
  caches.clear();
});

async function launch([command = "", ...args]: readonly string[], start: Start): Promise<ServerProcess> {
  const { directory, place = own, mode = "workspace-write", env = {}, name = "tried" } = start;
  const environment = readEnvironment();
  caches.add(cacheVolumeName([directory, name]));
  const options: LaunchOptions = {
    engine: testEngine,
    settings: () => resolveSettings({ workspace: directory, mode, environment, leaseSeconds: 20 }),
    sandbox: start.sandbox ?? new Promise(() => undefined),
    directory,
    variables: { ...environment.variables, HOST_SECRET: "s3cret" },
    onWarning: (warning) => start.warnings?.push(warning),
    onReceipt: (receipt) => start.receipts?.push(receipt),
  };
  const { signal } = new AbortController();
  return await serverLauncher({ [name]: place }, options)(
    name,
    { command, args, env, cwd: null },
    { signal },
  );
}

async function outputOf(argv: readonly string[], start: Start): Promise<string> {
  const server = await launch(argv, start);
  try {
    const chunks: Buffer[] = [];
    server.stderr.resume();
    for await (const chunk of server.stdout) chunks.push(chunk as Buffer);
    await server.exited;
    return Buffer.concat(chunks).toString();
  } finally {
    await server.kill();
  }
}

/** The containers that mount the directory. */
async function containersOn(directory: string): Promise<string[]> {
  const { stdout } = await run("docker", ["ps", "-aq", "--no-trunc", "--filter", `volume=${directory}`]);
  return stdout.split("\n").filter(Boolean);
}

forEachHostUser((test) => {
  describe("a server in a container of its own", () => {
    test("sees the workspace as the session does, protected names too", async ({ directory }) => {
      const attempts = JSON.stringify([
        ["create", join(directory, "made")],
        ["create", join(directory, ".git/hook")],
        ["mkdir", join(directory, ".brig/x")],
        ["create", "/etc/made"],
      ]);
      const receipts: unknown[] = [];
      expect(JSON.parse(await outputOf(program("attempts.py", attempts), { directory, receipts }))).toEqual([
        "ok",
        "EROFS",
        "EROFS",
        "EROFS",
      ]);
      expect(await readdir(directory)).toEqual(["made"]);
      expect(receipts).toMatchObject([{ findings: [] }]);
    });

    test("sees a read-only workspace read-only, and one with full access without its root", async ({
      directory,
    }) => {
      const attempts = JSON.stringify([["create", join(directory, "made")]]);
      const argv = program("attempts.py", attempts);
      expect(await outputOf(argv, { directory, mode: "read-only" })).toContain("EROFS");
      expect(await outputOf(argv, { directory, mode: "danger-full-access" })).toContain("ok");
      const status = await outputOf(["sh", "-c", "id -u; grep -E '^(CapEff|NoNewPrivs)' /proc/self/status"], {
        directory,
        mode: "danger-full-access",
      });
      expect(status).toBe(`${process.getuid?.()}\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\n`);
    });

    test("reaches neither the host's files, nor its network, nor the session's processes", async ({
      directory,
      open,
    }) => {
      const session = await open({ workspace: directory });
      const marker = `mcp-marker-${process.pid}`;
      const sleeping = await session.spawn(["sleep", "300"], { env: { MARKER: marker } });
      const secret = join(directory, "..", `brig-host-secret-${process.pid}`);
      await writeFile(secret, "secret");
      const output = await outputOf(["python3", "-c", REACH, secret, marker, "/var/run/docker.sock"], {
        directory,
      });
      await sleeping.kill();
      expect(JSON.parse(output)).toEqual({
        "host file": "ENOENT",
        "docker socket": "ENOENT",
        "session's processes": "none",
        connect: "ENETUNREACH",
        "name lookup": "fails",
        interfaces: ["lo"],
        environment: [],
      });
    });

    test("keeps what npx and uvx download in a volume that no other server has", async ({ directory }) => {
      const write = [
        "sh",
        "-c",
        'mkdir -p "$npm_config_cache" "$UV_CACHE_DIR" && date > "$npm_config_cache/x" && echo ok',
      ];
      const read = ["sh", "-c", 'cat "$npm_config_cache/x" && ls -d /brig-cache/*'];
      const server = await launch(write, { directory });
      await server.exited;
      await server.kill();
      expect(await outputOf(read, { directory, name: "other" })).toBe("");
      const again = await outputOf(read, { directory });
      expect(again).toContain("/brig-cache/npm\n/brig-cache/uv\n");
    });
  });
});

const REACH = `
import errno, json, os, socket, sys
secret, marker, docker = sys.argv[1:]
def tried(action):
    try:
        action()
        return "ok"
    except socket.gaierror:
        return "fails"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
def environments():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = open(f"/proc/{pid}/environ", "rb").read() + open(f"/proc/{pid}/cmdline", "rb").read()
        except OSError:
            continue
        if marker.encode() in text and int(pid) != os.getpid():
            found.append(pid)
    return found or "none"
print(json.dumps({
    "host file": tried(lambda: open(secret)),
    "docker socket": tried(lambda: open(docker)),
    "session's processes": environments(),
    "connect": tried(lambda: socket.create_connection(("192.0.2.1", 80), 5)),
    "name lookup": tried(lambda: socket.getaddrinfo("example.org", 80)),
    "interfaces": sorted(os.listdir("/sys/class/net")),
    "environment": [name for name in os.environ if "SECRET" in name],
}))
`;

describe("a server, wherever it runs", () => {
  async function respond(server: ServerProcess): Promise<Record<string, unknown>> {
    const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
    server.stdin.write(
      `${JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "initialize",
        params: {
          protocolVersion: "2025-06-18",
          capabilities: {},
          clientInfo: { name: "test", version: "1" },
        },
      })}\n`,
    );
    const { value } = await lines.next();
    return JSON.parse(String(value)) as Record<string, unknown>;
  }

  sandboxTest("that is a real one starts from the workspace, contained", async ({ directory, skip }) => {
    skip(everything.missing !== null, everything.missing ?? "");
    cpSync(realpathSync(everything.folder), join(directory, "server"), { recursive: true });
    await giveToHostUser(directory);
    const main = "server/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    const server = await launch(["node", join(directory, main)], { directory });
    server.stderr.resume();
    expect(await respond(server)).toMatchObject({
      id: 1,
      result: { serverInfo: { name: expect.stringMatching(/everything/) } },
    });
    expect(await containersOn(directory)).toHaveLength(1);
    await server.kill();
    expect(await containersOn(directory)).toEqual([]);
  });

  const stubborn = ["bash", "-c", "trap '' TERM INT HUP; sleep 1000 & echo ready; while :; do sleep 1; done"];

  sandboxTest("ends when it is killed, whatever it ignores", async ({ directory, open }) => {
    const session = open({ workspace: directory });
    for (const place of [own, { kind: "session" }, { kind: "host" }] satisfies ServerPlace[]) {
      const server = await launch(stubborn, { directory, place, sandbox: session });
      await once(server.stdout, "data");
      await Promise.all([server.kill(), server.kill()]);
      expect(await server.exited).not.toMatchObject({ exitCode: 0 });
    }
    const sandbox = await session;
    expect(await containersOn(directory)).toEqual([sandbox.containerId]);
    const left = await sandbox.exec(["sh", "-c", "ps -eo args | grep -c '[s]leep 1000'"]);
    expect(left.stdout).toBe("0\n");
    expect(await hostProcesses("sleep 1000")).toEqual([]);
  });

  sandboxTest("takes its container with it when it ends by itself", async ({ directory }) => {
    const server = await launch(["sh", "-c", "read line; exit 3"], { directory });
    expect(await containersOn(directory)).toHaveLength(1);
    server.stdin.end("go\n");
    expect(await server.exited).toEqual({ exitCode: 3, signal: null, reason: undefined });
    await server.kill();
    expect(await containersOn(directory)).toEqual([]);
  });

  sandboxTest("whose program does not exist has ended, and says why", async ({ directory, open }) => {
    const session = open({ workspace: directory });
    for (const place of [own, { kind: "session" }, { kind: "host" }] satisfies ServerPlace[]) {
      const server = await launch(["/no/such/server"], { directory, place, sandbox: session });
      const { reason } = await server.exited;
      expect(reason).toMatch(/\/no\/such\/server/);
      await server.kill();
    }
    expect(await containersOn(directory)).toEqual([(await session).containerId]);
  });

  sandboxTest("in the session's sandbox sees what commands see", async ({ directory, open }) => {
    const session = await open({ workspace: directory });
    await session.exec(["sh", "-c", "echo of the session > /tmp/seen"]);
    const output = await outputOf(["sh", "-c", "cat /tmp/seen; echo $GIVEN; pwd"], {
      directory,
      place: { kind: "session" },
      sandbox: Promise.resolve(session),
      env: { GIVEN: "yes" },
    });
    expect(output).toBe(`of the session\nyes\n${directory}\n`);
  });

  sandboxTest("on this machine has only the environment it is given", async ({ directory }) => {
    const output = await outputOf(
      ["sh", "-c", 'pwd; echo $GIVEN $HOST_SECRET; test -n "$PATH" && echo path'],
      {
        directory,
        place: { kind: "host" },
        env: { GIVEN: "yes" },
      },
    );
    expect(output).toBe(`${directory}\nyes\npath\n`);
  });

  sandboxTest("has its variables where docker inspect does not show them", async ({ directory }) => {
    const server = await launch(["sh", "-c", 'echo "$TOKEN"; read line'], {
      directory,
      env: { TOKEN: "t0ken" },
    });
    const [chunk] = (await once(server.stdout, "data")) as [Buffer];
    expect(chunk.toString()).toBe("t0ken\n");
    const [id = ""] = await containersOn(directory);
    expect((await run("docker", ["inspect", id])).stdout).not.toContain("t0ken");
    await server.kill();
  });

  sandboxTest("has a network only if its place names one", async ({ directory }) => {
    const interfaces = ["sh", "-c", "ls /sys/class/net"];
    const place: ServerPlace = { kind: "own", image: null, network: "full" };
    expect(await outputOf(interfaces, { directory, place, mode: "read-only" })).toBe("eth0\nlo\n");
    expect(await outputOf(interfaces, { directory, mode: "danger-full-access" })).toBe("lo\n");
  });

  sandboxTest("that is no longer wanted while its container starts leaves nothing", async ({ directory }) => {
    const stop = new AbortController();
    const environment = readEnvironment();
    caches.add(cacheVolumeName([directory, "tried"]));
    const start = serverLauncher(
      { tried: own },
      {
        engine: testEngine,
        settings: () => resolveSettings({ workspace: directory, mode: "read-only", environment }),
        sandbox: new Promise(() => undefined),
        directory,
        variables: {},
      },
    );
    const command = { command: "sleep", args: ["100"], env: {}, cwd: null };
    const starting = start("tried", command, { signal: stop.signal });
    await vi.waitUntil(async () => (await containersOn(directory)).length > 0, { timeout: 60_000 });
    stop.abort(new Error("enough"));
    await expect(starting).rejects.toThrow("enough");
    expect(await containersOn(directory)).toEqual([]);
  });
});

async function hostProcesses(args: string): Promise<string[]> {
  const { stdout } = await run("ps", ["-eo", "pid,args"]);
  return stdout
    .split("\n")
    .filter((line) => line.trim().replace(/^[0-9]+ /, "") === args && isOurs(Number.parseInt(line, 10)));
}
