import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EgressAttempt } from "../../../../src/sandbox/egress/attempt.js";
import { eventually } from "../../../support/egress-place.js";
import { openTestSandbox, type TestSandbox } from "../../../support/sandbox.js";
import { tlsServer } from "../../../support/tls-server.js";

const SECRET = "sk-Xq7-only-outside-of-the-sandbox-0451";
const HOST = "host.internal";
const attempts: EgressAttempt[] = [];
const received: { url: string | undefined; authorization: string | undefined }[] = [];
let server: Awaited<ReturnType<typeof tlsServer>>;
let opened: TestSandbox;
let authorities: string;

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), "brig-secrets-"));
  authorities = join(folder, "company.pem");
  server = await tlsServer(HOST, (request, response) => {
    const { url, headers } = request;
    received.push({ url, authorization: headers.authorization });
    if (url?.startsWith("/repository.git") && headers.authorization === undefined)
      response.writeHead(401, { "www-authenticate": "Basic realm=git" });
    response.end(`${headers.authorization}\n`);
  });
  execFileSync("tee", [authorities], { input: server.authority, stdio: ["pipe", "ignore", "inherit"] });
  opened = await openTestSandbox({
    network: `allowlist:${HOST}:${server.port}`,
    egress: {
      ca_files: [authorities],
      rules: [{ host: `${HOST}:${server.port}`, methods: ["GET"] }],
      secrets: { API_KEY: { hosts: [`${HOST}:${server.port}`], value: SECRET } },
    },
    onEgress: (attempt) => attempts.push(attempt),
  });
}, 120_000);

afterAll(async () => {
  await opened?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
  rmSync(join(authorities, ".."), { recursive: true });
});

async function run(script: string) {
  return await opened.sandbox.exec(["bash", "-c", script], { timeoutMs: 60_000 });
}

describe("a secret", () => {
  it.each([
    ["curl", () => `curl -sS -H "Authorization: Bearer $API_KEY" ${url()}`],
    ["Node", () => `node -e '${node()}'`],
    [
      "Python",
      () =>
        `python3 -c 'import os, urllib.request as u; print(u.urlopen(u.Request("${url()}", headers={"Authorization": "Bearer " + os.environ["API_KEY"]})).read().decode())'`,
    ],
  ])("is sent by %s, which trusts brig's certificate and gets the secret masked", async (_, script) => {
    received.length = 0;
    const { stdout, stderr } = await run(script());
    expect(stderr.toString()).toBe("");
    expect(received).toEqual([{ url: "/x", authorization: `Bearer ${SECRET}` }]);
    expect(stdout.toString().trim()).toBe(`Bearer ${"*".repeat(SECRET.length)}`);
  });

  it("is sent by git as a password", async () => {
    received.length = 0;
    await run(
      `git -c credential.helper='!f() { echo username=me; echo password=$API_KEY; }; f' ls-remote ${url("/repository.git")}`,
    );
    const basic = `Basic ${Buffer.from(`me:${SECRET}`).toString("base64")}`;
    expect(received.map(({ authorization }) => authorization)).toContain(basic);
  });

  it("is nowhere in the container, where its placeholder is found", async () => {
    await run(`curl -sS -H "Authorization: Bearer $API_KEY" ${url()} >/tmp/answer`);
    // A pattern that does not find itself in the memory and command lines of what searches.
    const search = (text: string) =>
      run(`
        (sleep 30; : $API_KEY) & sleeper=$!
        pattern='${text.slice(0, -1)}[${text.slice(-1)}]'
        { grep -alE "$pattern" /proc/[0-9]*/environ /proc/[0-9]*/cmdline
          grep -rIlE --binary-files=text "$pattern" /tmp /home /run /dev/shm /etc "$PWD"
          for id in /proc/[0-9]*; do
            while read -r range _; do
              from=$((16#\${range%-*})); to=$((16#\${range#*-}))
              dd if=$id/mem bs=4096 skip=$((from / 4096)) count=$(((to - from) / 4096)) 2>/dev/null | grep -qaE "$pattern" && echo "$id memory"
            done < <(grep ' rw' $id/maps 2>/dev/null)
          done
        } 2>/dev/null
        kill $sleeper
      `);
    const { stdout: variable } = await run("printf %s $API_KEY");
    const placeholder = variable.toString();
    expect(placeholder).toMatch(/^sk-[A-Za-z0-9]{40}$/);
    expect((await search(SECRET)).stdout.toString()).toBe("");
    const found = (await search(placeholder)).stdout.toString();
    expect(found).toContain("/environ");
    expect(found).toContain("memory");
    const { stdout: answer } = await run("cat /tmp/answer");
    expect(answer.toString()).toBe(`Bearer ${"*".repeat(SECRET.length)}\n`);
  });

  it("and a request that no rule allows are refused in words that a model reads", async () => {
    received.length = 0;
    const { stdout } = await run(`curl -sS -X DELETE ${url()}; curl -sS -H "X-Other: $API_KEY" ${url()}`);
    expect(received).toEqual([]);
    expect(stdout.toString()).toContain(`no rule for requests to ${HOST}:${server.port} allows DELETE /x`);
    expect(stdout.toString()).toContain("the secret API_KEY may not be sent");
    await eventually(() => expect(attempts.at(-1)?.outcome.kind).toBe("denied"));
    expect(JSON.stringify(attempts)).not.toContain(SECRET);
  });

  it("is not for a program that trusts only its own certificates, which is said", async () => {
    const { exitCode } = await run(`env -u CURL_CA_BUNDLE -u SSL_CERT_FILE curl -sS ${url()}`);
    expect(exitCode).toBe(60);
    await eventually(() =>
      expect(attempts.at(-1)?.outcome).toMatchObject({ kind: "denied", denial: { kind: "unreadable" } }),
    );
  });
});

function url(path = "/x") {
  return `https://${HOST}:${server.port}${path}`;
}

/** Without a proxy: the name leads to brig by itself. */
function node() {
  return `require("https").get("${url()}", { headers: { authorization: "Bearer " + process.env.API_KEY } }, (answer) => answer.pipe(process.stdout))`;
}
