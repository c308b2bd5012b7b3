import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { brigHere } from "../support/cli-here.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

const CONFIGURED = "ghp-configured-5b1f2c9e7a";
const AGENTS = "sk-ant-agents-81c02d4e6f";
const seen: string[] = [];
const server = createServer((request, response) => {
  seen.push(`${request.method} ${request.url} ${request.headers.authorization ?? "-"}`);
  response.end("answer\n");
});
let folder: TemporaryDirectory;
let host = "";
let address = "";

beforeAll(async () => {
  folder = await temporaryDirectory();
  for (const name of ["home", "work"]) mkdirSync(join(folder.path, name));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  host = `host.internal:${port}`;
  address = `http://127.0.0.1:${port}`;
});

beforeEach(() => {
  seen.length = 0;
});

afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await folder[Symbol.asyncDispose]();
});

const configure = (text: string) => writeFileSync(join(folder.path, "home", "config.toml"), text);
const secret = (name: string) =>
  `[egress.secrets.${name}]\nhosts = ["${host}"]\nenv = "REAL_TOKEN"\nplain_http = true\n`;

async function wrap(flags: string[], script: string, env: Record<string, string> = {}) {
  const home = join(folder.path, "home");
  return await brigHere(["wrap", ...flags, "--", "bash", "-c", script], {
    cwd: join(folder.path, "work"),
    env: { BRIG_HOME: home, CODEX_HOME: home, HOME: home, REAL_TOKEN: CONFIGURED, ...env },
  });
}

const list = () => ["--network", `allowlist:${host}`];
const sends = (variable: string, path: string) =>
  `curl -s -o /dev/null -w '%{http_code} ' -H "Authorization: Bearer $${variable}" http://${host}${path}`;

describe("brig wrap with [egress] in config.toml", () => {
  it("holds the agent to the rules, and keeps the secrets outside", async () => {
    configure(`[[egress.rules]]\nhost = "${host}"\nmethods = ["GET"]\n${secret("GITHUB_TOKEN")}`);
    const script = `${sends("GITHUB_TOKEN", "/a")}; curl -s -o /dev/null -w '%{http_code} ' -d x http://${host}/a; echo $GITHUB_TOKEN`;
    const ended = await wrap(list(), script);
    expect(ended.stdout, ended.stderr).toMatch(/^200 403 \S+\n$/);
    expect(seen).toEqual([`GET /a Bearer ${CONFIGURED}`]);
    expect(ended.stdout + ended.stderr).not.toContain(CONFIGURED);
    expect(ended.stderr).toContain("GITHUB_TOKEN is a secret of config.toml, which stays outside");
  });

  it("sends the key of the agent before a secret of the same name, and says so", async () => {
    configure(`${secret("ANTHROPIC_API_KEY")}${secret("GITHUB_TOKEN")}`);
    const script = `${sends("ANTHROPIC_API_KEY", "/model")}; ${sends("GITHUB_TOKEN", "/git")}`;
    const agent = { ANTHROPIC_API_KEY: AGENTS, ANTHROPIC_BASE_URL: address };
    const ended = await wrap(["--agent", "claude"], script, agent);
    expect(ended.stdout, ended.stderr).toBe("200 200 ");
    expect(seen).toEqual([`GET /model Bearer ${AGENTS}`, `GET /git Bearer ${CONFIGURED}`]);
    expect(ended.stderr).toContain("the secret ANTHROPIC_API_KEY of config.toml is not used");
  });

  it("takes a key that only the configuration has, and does not say that there is none", async () => {
    configure(secret("ANTHROPIC_API_KEY"));
    const ended = await wrap(["--agent", "claude", ...list()], sends("ANTHROPIC_API_KEY", "/model"));
    expect(ended.stdout, ended.stderr).toBe("200 ");
    expect(seen).toEqual([`GET /model Bearer ${CONFIGURED}`]);
    expect(ended.stderr).not.toContain("no key is set");
  });

  it("refuses a canary in the variable of the agent's key", async () => {
    configure('[egress.canaries.trap]\nvariable = "ANTHROPIC_API_KEY"\n');
    const agent = { ANTHROPIC_API_KEY: AGENTS, ANTHROPIC_BASE_URL: address };
    const ended = await wrap(["--agent", "claude"], "touch ran", agent);
    expect(ended).toMatchObject({ exitCode: 125, stdout: "" });
    expect(ended.stderr).toContain("two secrets or canaries have the same variable, ANTHROPIC_API_KEY");
  });

  it("ends the agent that sends a canary", async () => {
    configure('[egress.canaries.trap]\nvariable = "BACKUP_TOKEN"\n');
    const ended = await wrap(
      list(),
      `curl -s "http://${host}/?q=$BACKUP_TOKEN"; curl -s http://${host}/after; true`,
    );
    expect(seen).toEqual([]);
    expect(ended.exitCode, ended.stderr).toBe(125);
    expect(ended.stderr).toContain("tried to send the canary trap");
  });

  it("does not read it without a list of allowed hosts", async () => {
    configure("egress = 1");
    const ended = await wrap(["--network", "none"], "echo ran");
    expect(ended.stdout, ended.stderr).toBe("ran\n");
  });
});
