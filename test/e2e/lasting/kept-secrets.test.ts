import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { readEnvironment } from "../../../src/lib/env.js";
import { connectSandbox } from "../../../src/services/index.js";
import { testEngine } from "../../support/engine.js";
import { createRepository, git } from "../../support/git-repositories.js";
import {
  endProcess,
  killOwner,
  type LastingPlace,
  lastingPlace,
  upIn,
  watchersOf,
} from "../../support/lasting.js";
import { tlsServer } from "../../support/tls-server.js";

const SECRET = "sk-Xq7-only-outside-of-the-sandbox-0453";
const patience = { timeout: 30_000, interval: 100 };
const received: (string | undefined)[] = [];
let server: Awaited<ReturnType<typeof tlsServer>>;
let host: string;

beforeAll(async () => {
  server = await tlsServer("host.internal", (request, response) => {
    received.push(request.headers.authorization);
    response.end(`${request.method} ${request.headers.authorization}\n`);
  });
  host = `host.internal:${server.port}`;
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

beforeEach(() => {
  received.length = 0;
});

/** A place whose configuration trusts the server and has these rules. */
async function placeWith(egress: string): Promise<LastingPlace> {
  const place = await lastingPlace();
  await mkdir(place.home, { mode: 0o700 });
  await writeFile(join(place.home, "company.pem"), server.authority);
  await configure(place, egress);
  return place;
}

async function configure({ home }: LastingPlace, egress: string): Promise<void> {
  const authorities = `[egress]\nca_files = [${JSON.stringify(join(home, "company.pem"))}]\n`;
  await writeFile(join(home, "config.toml"), authorities + egress);
}

const onlyGet = () => `[[egress.rules]]\nhost = "${host}"\nmethods = ["GET"]\n`;
const ask = (...more: string[]) =>
  ["curl", "-sS", "-H", '"Authorization: Bearer $API_KEY"', ...more, `https://${host}/`].join(" ");

async function inOne(place: LastingPlace, script: string) {
  return await place.run("exec", "--in", "one", "--", "sh", "-c", script);
}

async function upWithSecret(place: LastingPlace): Promise<void> {
  const flags = ["--network", `allowlist:${host}`, "--secret", `API_KEY=${host}`];
  const up = await place.start(["up", "--name", "one", ...flags], { env: { API_KEY: SECRET } });
  expect([up.exitCode, up.stderr]).toEqual([0, ""]);
}

/** Ends the owner and whatever would start the next one. */
async function killAll(place: LastingPlace): Promise<void> {
  await expect.poll(async () => (await watchersOf(place)).length, patience).toBe(1);
  for (const pid of await watchersOf(place)) process.kill(pid, "SIGKILL");
  await endProcess((await place.ownerPid()) ?? 0, "SIGKILL");
}

describe("a lasting sandbox with a secret whose owner is killed", () => {
  it("goes on with the secret, its placeholder, the rules and the certificates, and no file has the secret", async () => {
    const place = await placeWith(onlyGet());
    await upWithSecret(place);
    const placeholder = (await inOne(place, "printenv API_KEY")).stdout;
    // A program that has read the placeholder and the certificates before.
    const repeats = `while :; do ${ask()}; sleep 0.05; done`;
    expect((await place.run("exec", "--in", "one", "-d", "--", "sh", "-c", repeats)).exitCode).toBe(0);
    // What the configuration says by now is for sandboxes that are started by now.
    await configure(place, "");
    for (let killed = 0; killed < 3; killed++) {
      await expect.poll(() => received.at(-1), patience).toBe(`Bearer ${SECRET}`);
      await killOwner(place);
      received.length = 0;
    }
    await expect.poll(() => received.at(-1), patience).toBe(`Bearer ${SECRET}`);
    expect((await inOne(place, "printenv API_KEY")).stdout).toBe(placeholder);
    expect((await inOne(place, ask())).stdout).toBe(`GET Bearer ${"*".repeat(SECRET.length)}\n`);
    expect((await inOne(place, ask("-d", "x", "-o", "/dev/null", "-w", "'%{http_code}'"))).stdout).toBe(
      "403",
    );
    const written = await execa("grep", ["-r", SECRET, place.home], { reject: false });
    expect(written.stdout).toBe("");
    expect((await place.run("rm", "one")).exitCode).toBe(0);
    expect((await readdir(join(place.home, "lasting"))).filter((name) => name.startsWith("one"))).toEqual([]);
  });

  it("goes on with them although a command comes before the next owner is there", async () => {
    const place = await placeWith("");
    await upWithSecret(place);
    for (let killed = 0; killed < 4; killed++) {
      await endProcess((await place.ownerPid()) ?? 0, "SIGKILL");
      const [stats, connected] = await Promise.all([
        place.start(["stats", "one", "--json"]),
        connectSandbox("one", { environment: { ...readEnvironment(), brigHome: place.home } }),
      ]);
      expect([stats.exitCode, stats.stderr]).toEqual([0, ""]);
      expect((await connected.exec(["sh", "-c", ask()])).stdout).toBe(
        `GET Bearer ${"*".repeat(SECRET.length)}\n`,
      );
      await connected.close();
    }
    await place.run("rm", "one");
  });

  it("is told from its fork, which has the secret as well", async () => {
    const place = await placeWith("");
    const flags = ["--network", `allowlist:${host}`, "--secret", `API_KEY=${host}`, "--workspace", "overlay"];
    const up = await place.start(["up", "--name", "one", ...flags], { env: { API_KEY: SECRET } });
    expect([up.exitCode, up.stderr]).toEqual([0, ""]);
    expect((await place.run("fork", "one", "--name", "two")).exitCode).toBe(0);
    await killOwner(place);
    for (const name of ["one", "two"]) {
      const { stdout } = await place.run("exec", "--in", name, "--", "sh", "-c", ask());
      expect(stdout).toBe(`GET Bearer ${"*".repeat(SECRET.length)}\n`);
    }
    expect(received).toEqual([`Bearer ${SECRET}`, `Bearer ${SECRET}`]);
    for (const name of ["one", "two"]) await place.run("rm", name);
  });

  it("ends, with its container, if the process that remembers the key is killed as well", async () => {
    const place = await placeWith("");
    await upWithSecret(place);
    const { id } = JSON.parse((await place.run("ps", "--json")).stdout)[0];
    await killAll(place);
    const { exitCode, stderr } = await inOne(place, "true");
    expect([exitCode, stderr]).toEqual([125, expect.stringContaining("was killed")]);
    const engine = await testEngine();
    await expect.poll(() => engine.inspectContainer(`brig-${id}`), patience).toBeNull();
    expect((await place.run("ps", "--all", "--json")).stdout).toContain('"stopped"');
    expect((await readFile(join(place.home, "service.log"), "utf8")).includes(SECRET)).toBe(false);
  });
});

describe("a lasting sandbox with rules or a canary whose owner is killed", () => {
  it("goes on with them, even if only the next command starts another owner", async () => {
    const place = await placeWith(`${onlyGet()}[egress.canaries.TRAP]\nfile = "/tmp/trap"\n`);
    await upIn(place, "--name", "one", "--network", `allowlist:${host}`);
    const trap = (await inOne(place, "cat /tmp/trap")).stdout;
    expect(trap).toMatch(/^[A-Za-z0-9]{40}\n$/);
    await inOne(place, "echo removed > /tmp/trap");
    await killAll(place);
    expect((await inOne(place, ask())).stdout).toBe("GET Bearer\n");
    expect((await inOne(place, ask("-d", "x", "-o", "/dev/null", "-w", "'%{http_code}'"))).stdout).toBe(
      "403",
    );
    // What programs have made of the file since is theirs, and the canary is looked for all the same.
    expect((await inOne(place, "cat /tmp/trap")).stdout).toBe("removed\n");
    const sent = await inOne(place, ask("-H", `"X-Key: ${trap.trim()}"`));
    expect(sent.stdout).not.toContain("GET");
    expect(received).toHaveLength(1);
    await place.run("rm", "one");
  });
});

describe.each(["bind", "overlay"])("a lasting sandbox with --git branch and --workspace %s", (kind) => {
  it("brings the commits from before and after its owner was killed as one branch", async () => {
    const place = await lastingPlace();
    const repository = await createRepository(place.workspace);
    const before = git(repository, ["rev-parse", "HEAD"]);
    await upIn(place, "--name", "one", "--git", "branch", "--workspace", kind);
    const commit = "git config user.name A; git config user.email a@b; git commit -q --allow-empty -m";
    expect((await inOne(place, `${commit} one`)).exitCode).toBe(0);
    for (let killed = 0; killed < 2; killed++) await killOwner(place);
    expect((await inOne(place, `${commit} two`)).exitCode).toBe(0);
    const { exitCode, stderr } = await place.run("rm", "one");
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining("2 commits arrived")]);
    const branches = git(repository, ["for-each-ref", "--format=%(refname:short)", "refs/heads/brig"]);
    expect(branches).toMatch(/^brig\/[0-9a-f-]{36}$/);
    expect(git(repository, ["log", "--format=%s", branches])).toBe("two\none\nwrite first.txt");
    expect(git(repository, ["rev-parse", "HEAD"])).toBe(before);
  });
});
