import { once } from "node:events";
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EgressAttempt } from "../../../../src/sandbox/egress/attempt.js";
import { policyDirectory } from "../../../../src/sandbox/policy/policy-directory.js";
import { companyProxy } from "../../../support/company-proxy.js";
import { eventually } from "../../../support/egress-place.js";
import { testEngine } from "../../../support/engine.js";
import { becomeHostUser } from "../../../support/host-users.js";
import { isGvisor } from "../../../support/runtime-differences.js";
import { openTestSandbox, type TestSandbox } from "../../../support/sandbox.js";
import { selfSigned } from "../../../support/self-signed.js";

const certificate = fileURLToPath(new URL("../../../fixtures/tls/certificate.pem", import.meta.url));
const plain = createServer((request, response) => response.end(`plain ${request.method} ${request.url}\n`));
const tls = createTlsServer(selfSigned, (_, response) => response.end("over tls\n"));
const secret = createServer((_, response) => response.end("secret\n"));
const attempts: EgressAttempt[] = [];
let opened: TestSandbox;
let ports: { plain: number; tls: number; secret: number };

beforeAll(async () => {
  ports = { plain: await portOf(plain), tls: await portOf(tls), secret: await portOf(secret) };
  opened = await openTestSandbox({ network: allowed(), onEgress: (attempt) => attempts.push(attempt) });
  await copyFile(certificate, join(opened.workspace, "ca.pem"));
}, 120_000);

afterAll(async () => {
  await opened?.[Symbol.asyncDispose]();
  for (const server of [plain, tls, secret]) {
    server.closeAllConnections();
    server.close();
  }
});

function allowed() {
  return `allowlist:host.internal:${ports.plain},host.internal:${ports.tls}`;
}

/** A policy with another network, and with the word on whether it may be opened further. */
async function policyOf(
  directory: string,
  { network, mayOpen }: { network: string; mayOpen: boolean },
): Promise<string> {
  const toml = await readFile(join(policyDirectory, "workspace-write.toml"), "utf8");
  const file = join(directory, `${mayOpen}.toml`);
  const changed = toml
    .replace('network = "none"', `network = ${JSON.stringify(network)}`)
    .replace("network = true", `network = ${mayOpen}`);
  await writeFile(file, changed);
  return file;
}

async function portOf(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

async function run(script: string) {
  return await opened.sandbox.exec(["bash", "-c", script], { timeoutMs: 60_000 });
}

describe("a sandbox with an allow-list", () => {
  it("reaches what it allows, by every way that programs have", async () => {
    const { plain, tls } = ports;
    const url = `http://host.internal:${plain}/x`;
    const direct = "env -u http_proxy -u https_proxy -u all_proxy -u HTTP_PROXY -u HTTPS_PROXY -u ALL_PROXY";
    const { stdout, stderr } = await run(`
      curl -sS ${url}
      curl -sS -p ${url}
      curl -sS --socks5-hostname 127.83.0.1:3128 ${url}
      ${direct} curl -sS ${url}
      curl -sS --cacert ca.pem https://host.internal:${tls}/
      ${direct} curl -sS --cacert ca.pem https://host.internal:${tls}/
      python3 -c 'import urllib.request as u; print(u.urlopen("${url}").read().decode(), end="")'
      node -e 'fetch("${url}").then(async (r) => process.stdout.write(await r.text()))'
    `);
    expect(stderr).toBe("");
    const [overTls, overPlain] = ["over tls\n", "plain GET /x\n"];
    expect(stdout).toBe(overPlain.repeat(4) + overTls.repeat(2) + overPlain.repeat(2));
    await eventually(() => expect(attempts).toHaveLength(8));
    expect(attempts.map(({ way }) => way)).toEqual(
      expect.arrayContaining(["http", "connect", "socks", "direct"]),
    );
    expect(attempts[0]).toMatchObject({
      ...{ host: "host.internal", port: plain, method: "GET", path: "/x" },
      ...{ outcome: { kind: "allowed" }, rule: `host.internal:${plain}`, owner: { program: "curl" } },
    });
  });

  it("lets out a user who is not root as well, with a name server and servers on low ports", async () => {
    becomeHostUser({ uid: 1234, gid: 4321 });
    await using other = await openTestSandbox({ network: allowed() });
    const { stdout, stderr } = await other.sandbox.exec(
      ["bash", "-c", `id -u; curl -sS --noproxy '*' http://host.internal:${ports.plain}/`],
      { timeoutMs: 60_000 },
    );
    expect({ stdout, stderr }).toEqual({ stdout: "1234\nplain GET /\n", stderr: "" });
  });

  it("answers several requests on one connection", async () => {
    attempts.length = 0;
    const twice = `
import http.client
connection = http.client.HTTPConnection("127.83.0.1", 3128)
for path in ["/1", "/2", "/3"]:
    connection.auto_open = path == "/1"
    connection.request("GET", f"http://host.internal:${ports.plain}{path}")
    print(connection.getresponse().read().decode(), end="")`;
    const { stdout, stderr } = await opened.sandbox.exec(["python3", "-c", twice]);
    expect({ stdout, stderr }).toEqual({ stdout: "plain GET /1\nplain GET /2\nplain GET /3\n", stderr: "" });
    await eventually(() => expect(attempts).toHaveLength(3));
  });

  it("says in the output of the command what it refused, and to whom", async () => {
    attempts.length = 0;
    const { stdout, stderr } = await run(`curl -sS http://host.internal:${ports.secret}/`);
    const sentence = `no rule of this sandbox's network allow-list allows host.internal:${ports.secret}`;
    expect(stdout).toContain(`brig: ${sentence}.`);
    expect(stderr).toContain(
      `[brig refused connections. Only the user can allow them, with --network:\n  ${sentence}]`,
    );
    expect(attempts).toMatchObject([
      { outcome: { kind: "denied", denial: { kind: "no-rule" } }, owner: { program: "curl" } },
    ]);
    const other = await run("true");
    expect(other.stderr).toBe("");
  });

  it("has no other way out: no interface, no address, no names", async () => {
    const unreachable = isGvisor ? "No route to host" : "Network is unreachable";
    const { stdout } = await run(`
      tail -n +3 /proc/net/dev | grep -o '[a-z0-9]*:'
      for address in 1.1.1.1 169.254.169.254 172.17.0.1 192.0.2.1; do
        (echo > /dev/tcp/$address/80) 2>&1 | grep -o -m 1 "${unreachable}"
      done
      (echo > /dev/tcp/127.0.0.1/${ports.plain}) 2>&1 | grep -o -m 1 "Connection refused"
      getent ahosts secret-data.attacker.example || echo no such name
      getent ahosts host.internal | head -n 1 | cut -d' ' -f1
      RES_OPTIONS=use-vc getent ahosts host.internal | head -n 1 | cut -d' ' -f1
      grep ^nameserver /etc/resolv.conf
    `);
    expect(stdout.split("\n")).toEqual([
      "lo:",
      ...Array(4).fill(unreachable),
      "Connection refused",
      "no such name",
      "127.84.0.1",
      "127.84.0.1",
      "nameserver 127.83.0.1",
      "",
    ]);
  });

  it("can be given other hosts while it runs", async () => {
    const ask = async () => (await run(`curl -s http://host.internal:${ports.secret}/`)).stdout;
    expect(await ask()).toContain("no rule");
    opened.sandbox.setNetwork(`allowlist:host.internal:${ports.secret}`);
    expect(await ask()).toBe("secret\n");
    opened.sandbox.setNetwork("none");
    expect(await ask()).toContain("no rule");
    expect(() => opened.sandbox.setNetwork("full")).toThrow(/cannot get the full network/);
    expect(() => opened.sandbox.setNetwork("allowlist:*")).toThrow(/write @public/);
    opened.sandbox.setNetwork(allowed());
  });

  it("is opened neither by its caller nor by an answer where the policy does not allow that", async () => {
    const asked: string[] = [];
    for (const mayOpen of [true, false]) {
      const policyFile = await policyOf(opened.workspace, { network: allowed(), mayOpen });
      await using own = await openTestSandbox({ policyFile });
      const { sandbox } = own;
      sandbox.watchEgress(() => undefined, {
        ask: async ({ host }) => {
          asked.push(`${mayOpen} ${host}`);
          return { kind: "once" };
        },
      });
      const url = `http://host.internal:${ports.secret}/`;
      const ask = async () => (await sandbox.exec(["curl", "-s", url])).stdout;
      expect(await ask()).toContain(mayOpen ? "secret" : "no rule");
      const open = () => sandbox.setNetwork(`allowlist:host.internal:${ports.secret}`);
      if (mayOpen) open();
      else expect(open).toThrow(/does not let the network be opened/);
      expect(await ask()).toContain(mayOpen ? "secret" : "no rule");
      sandbox.setNetwork(`allowlist:host.internal:${ports.plain}`);
      sandbox.setNetwork("none");
    }
    expect(asked).toEqual([`true host.internal:${ports.secret}`]);
  });

  it("reaches the internet through the proxy of a company, whose password stays outside", async () => {
    await using proxy = await companyProxy({ tunnelPorts: [ports.tls] });
    await using chained = await openTestSandbox({
      network: `allowlist:a.example,a.example:${ports.tls}`,
      egressProxy: proxy.url,
    });
    await copyFile(certificate, join(chained.workspace, "ca.pem"));
    const { stdout, stderr } = await chained.sandbox.exec([
      ...["bash", "-c"],
      `curl -sS http://a.example:${ports.plain}/x
       curl -sS --cacert ca.pem -k https://a.example:${ports.tls}/
       curl -sS --noproxy '*' -k https://a.example:${ports.tls}/
       cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'`,
    ]);
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^plain GET \/x\nover tls\nover tls\n/);
    expect(stdout).toContain("HTTPS_PROXY=http://127.83.0.1:3128");
    expect(stdout).not.toMatch(/p%40ss|p@ss/);
    expect(proxy.asked.map(({ line }) => line)).toEqual([
      `GET http://a.example:${ports.plain}/x`,
      ...Array(2).fill(`CONNECT a.example:${ports.tls}`),
    ]);
  });

  it("refuses a proxy that it cannot use before anything starts", async () => {
    const opening = openTestSandbox({ network: allowed(), egressProxy: "socks5://a:secret@p:1" });
    await expect(opening).rejects.toMatchObject({
      code: "usage.invalid",
      message: expect.not.stringContaining("secret"),
    });
  });

  it("is closed and removed in order after its container was killed", async () => {
    await using killed = await openTestSandbox({ network: allowed() });
    await (await testEngine()).killContainer(killed.sandbox.containerId);
    await expect(killed.sandbox.exec(["true"])).rejects.toMatchObject({ code: "sandbox.gone" });
  });

  it("is what lets programs out: with the network none the same server is out of reach", async () => {
    await using none = await openTestSandbox({ network: "none" });
    const command = ["curl", "-sS", `http://host.internal:${ports.plain}/x`];
    expect(await none.sandbox.exec(command)).toMatchObject({ exitCode: 6, stdout: "" });
    expect(() => none.sandbox.setNetwork(allowed())).toThrow(/created without an allow-list/);
  });
});
