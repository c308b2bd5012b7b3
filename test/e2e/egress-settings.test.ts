import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { brigHere } from "../support/cli-here.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

const SECRET = "sk-live-7f3a9c0d51e64b2288a1";
const server = createServer((request, response) => response.end(`${request.method} ${request.url}\n`));
const usual = readFileSync(new URL("../../sandbox-policies/workspace-write.toml", import.meta.url), "utf8");
let folder: TemporaryDirectory;
let host = "";

beforeAll(async () => {
  folder = await temporaryDirectory();
  for (const name of ["home", "work"]) mkdirSync(join(folder.path, name));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  host = `host.internal:${(server.address() as AddressInfo).port}`;
  configure(`[[egress.rules]]\nhost = "${host}"\nmethods = ["GET"]\n`);
});

afterAll(async () => {
  server.close();
  await folder[Symbol.asyncDispose]();
});

function configure(text: string): void {
  writeFileSync(join(folder.path, "home", "config.toml"), text);
}

function policy(name: string, egress: string): string {
  const file = join(folder.path, name);
  writeFileSync(file, `${usual}\n${egress}`);
  return file;
}

async function exec(flags: string[], script: string) {
  const home = join(folder.path, "home");
  return await brigHere(["exec", ...flags, "--", "bash", "-c", script], {
    cwd: join(folder.path, "work"),
    env: { BRIG_HOME: home, CODEX_HOME: home, REAL_KEY: SECRET },
  });
}

const list = () => ["--network", `allowlist:${host}`];
const ask = (...requests: string[]) =>
  requests.map((one) => `curl -s -o /dev/null -w '%{http_code} ' ${one}`).join("; ");

describe("brig exec with an allow-list", () => {
  it("holds requests to the rules of config.toml", async () => {
    const { stdout, stderr } = await exec(list(), ask(`http://${host}/a`, `-d x http://${host}/a`));
    expect(stdout, stderr).toBe("200 403 ");
  });

  it("holds requests to the rules of a policy file in the workspace as well, which cannot loosen the others", async () => {
    const file = policy("work/rules.toml", `[[egress.rules]]\nhost = "${host}"\npath = "/a"\n`);
    const requests = [`http://${host}/a`, `http://${host}/b`, `-d x http://${host}/a`];
    const { stdout, stderr } = await exec([...list(), "--policy", file], ask(...requests));
    expect(stdout, stderr).toBe("200 403 403 ");
    const full = await exec(["--network", "full", "--policy", file], "true");
    expect(full).toMatchObject({
      exitCode: 125,
      stderr: expect.stringContaining("need a list of allowed hosts"),
    });
  });

  it("does not run a command that a policy file in the workspace names, and does from $BRIG_HOME", async () => {
    const ran = join(folder.path, "ran");
    const secret = `[egress.secrets.KEY]\nhosts = ["${host}"]\ncommand = ["sh", "-c", "touch ${ran}; echo ${SECRET}"]\n`;
    const refused = await exec([...list(), "--policy", policy("work/secrets.toml", secret)], "echo $KEY");
    expect(refused).toMatchObject({
      exitCode: 125,
      stdout: "",
      stderr: expect.stringContaining("are not read from there"),
    });
    expect(() => readFileSync(ran)).toThrow();
    const { stdout, stderr } = await exec(
      [...list(), "--policy", policy("home/secrets.toml", secret)],
      "echo $KEY",
    );
    expect(stdout, stderr).toMatch(/^sk-[A-Za-z0-9]{40}\n$/);
    expect(readFileSync(ran, "utf8")).toBe("");
  });

  it("keeps the secret of --secret outside", async () => {
    const { stdout, stderr } = await exec([...list(), "--secret", `REAL_KEY=${host}`], "echo $REAL_KEY");
    expect(stdout, stderr).toMatch(/^sk-[A-Za-z0-9]{40}\n$/);
    expect(stdout).not.toContain(SECRET);
  });

  it.each([
    ["without an allow-list", [], /--secret has no effect without a list of allowed hosts/],
    [
      "of a variable that is not set",
      ["--network", "allowlist:x.test"],
      /the variable MISSING_KEY is not set/,
    ],
  ])("refuses a secret %s", async (_, flags, expected) => {
    const { exitCode, stderr } = await exec([...flags, "--secret", "MISSING_KEY=x.test"], "true");
    expect(stderr).toMatch(expected);
    expect(exitCode).toBe(125);
  });

  it("refuses a configuration that cannot be read, and reads none without an allow-list", async () => {
    configure("egress = 1\n");
    expect(await exec(list(), "true")).toMatchObject({
      exitCode: 125,
      stderr: expect.stringContaining("egress"),
    });
    expect(await exec([], "echo ran")).toMatchObject({ exitCode: 0, stdout: "ran\n" });
  });
});

it("brig doctor --attack says which requests are ruled, and which secrets stay outside", async () => {
  configure("");
  const secret = `[egress.secrets.KEY]\nhosts = ["${host}"]\nenv = "REAL_KEY"\n[[egress.rules]]\nhost = "${host}"\n`;
  const file = policy("home/attacked.toml", secret);
  const home = join(folder.path, "home");
  const { stdout } = await brigHere(["doctor", "--attack", "--no-control", ...list(), "--policy", file], {
    env: { BRIG_HOME: home, CODEX_HOME: home, REAL_KEY: SECRET },
  });
  expect(stdout.replaceAll(/\s+/g, " ")).toContain(
    `; rules for requests to ${host}; secrets that stay outside: KEY`,
  );
});
