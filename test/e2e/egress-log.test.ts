import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { brigHere, type EndedHere } from "../support/cli-here.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

const server = createServer((_, response) => response.end("answer\n"));
let folder: TemporaryDirectory;
let port = 0;
let done: EndedHere;
let id = "";

const run = (...args: string[]) =>
  brigHere(args, {
    cwd: join(folder.path, "work"),
    env: { BRIG_HOME: join(folder.path, "home"), CODEX_HOME: join(folder.path, "home"), OPENAI_API_KEY: "" },
  });

const shell = (script: string) => ({ calls: [{ shell: { command: ["bash", "-c", script] } }] });

beforeAll(async () => {
  folder = await temporaryDirectory();
  await Promise.all(["home", "work"].map((name) => mkdir(join(folder.path, name))));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ({ port } = server.address() as AddressInfo);
  const script = join(folder.path, "script.json");
  const steps = [
    shell(`for i in 1 2 3; do curl -s "http://host.internal:${port}/page?secret=1"; done`),
    shell("curl -s http://denied.example/$(printf 'a%.0s' {1..400}); true"),
    shell(`(exec -a x curl -s --proxytunnel http://$'\\e[31mbad' ) || true`),
    { text: "done" },
  ];
  await writeFile(script, JSON.stringify({ steps }));
  const network = ["--network", `allowlist:host.internal:${port}`];
  done = await run("run", "--json", ...network, "--script", script, "go");
  expect(done.exitCode, done.stderr).toBe(0);
  id = String(eventsOf("thread.started")[0]?.thread_id);
}, 120_000);

afterAll(async () => {
  server.close();
  await folder[Symbol.asyncDispose]();
});

function eventsOf(type: string): Record<string, unknown>[] {
  const events = done.stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  return events.filter((event) => event.type === type);
}

const jsonLines = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe("what a session with an allow-list tried to reach", () => {
  it("is in the events of --json, with the call that tried it", () => {
    const attempts = eventsOf("egress.attempted");
    expect(attempts[0]).toMatchObject({
      ...{ call_id: "call_1_1", program: "curl", way: "http", host: "host.internal", port, method: "GET" },
      ...{ path: "/page", outcome: "allowed", rule: `host.internal:${port}`, reason: null, count: 1 },
      ...{ bytes_in: expect.any(Number), started_at: expect.stringMatching(/^\d{4}-/) },
    });
    const denied = attempts.find((attempt) => attempt.call_id === "call_2_1");
    expect(denied).toMatchObject({ outcome: "denied", reason: "no-rule", host: "denied.example", port: 80 });
    expect(String(denied?.path).length).toBeLessThanOrEqual(301);
  });

  it("is listed by brig sessions egress, equal attempts together", async () => {
    const listed = await run("sessions", "egress", id);
    expect(listed.exitCode, listed.stderr).toBe(0);
    const [header, first, ...others] = listed.stdout.split("\n");
    expect(header).toMatch(
      /^TIME +PHASE +CALL +PROGRAM +HOST +REQUEST +OUTCOME +RULE OR REASON +SENT +RECEIVED +COUNT/,
    );
    expect(first).toMatch(
      new RegExp(
        `call_1_1 +curl +host\\.internal:${port} +GET /page +allowed +host\\.internal:${port} .* 3\\s*$`,
      ),
    );
    expect(others.join("\n")).toMatch(/call_2_1 +curl +denied\.example:80 +GET \/a+… +denied +no-rule/);
    expect(listed.stdout).not.toContain("\u001b");
  });

  it("is listed as JSON, and only what was refused", async () => {
    const listed = await run("sessions", "egress", id, "--denied", "--json");
    const entries = jsonLines(listed.stdout);
    expect(entries).toContainEqual(
      expect.objectContaining({ host: "denied.example", outcome: "denied", callId: "call_2_1" }),
    );
    expect(entries.every(({ outcome }) => outcome === "denied")).toBe(true);
  });

  it("goes with a fork, and does not keep the session from being shown", async () => {
    const forked = (await run("sessions", "fork", id)).stdout.trim();
    const [own, copy] = await Promise.all([
      run("sessions", "egress", id, "--json"),
      run("sessions", "egress", forked, "--json"),
    ]);
    expect(copy.stdout).toBe(own.stdout);
    const shown = await run("sessions", "show", forked);
    expect(shown.exitCode, shown.stderr).toBe(0);
  });

  it("is in the object that brig exec --json prints", async () => {
    const network = ["--network", `allowlist:host.internal:${port}`];
    const ended = await run(
      "exec",
      "--json",
      ...network,
      "--",
      "curl",
      "-s",
      `http://host.internal:${port}/`,
    );
    const { egress } = JSON.parse(ended.stdout) as { egress: unknown[] };
    expect(egress).toMatchObject([
      { host: "host.internal", port, outcome: "allowed", callId: null, count: 1 },
    ]);
    const without = JSON.parse((await run("exec", "--json", "--", "true")).stdout) as object;
    expect(without).not.toHaveProperty("egress");
  });

  it("becomes a proposal for a list that allows just that", async () => {
    const proposed = await run("sessions", "egress", id, "--propose", "--json");
    expect(JSON.parse(proposed.stdout)).toMatchObject({
      network: `allowlist:host.internal:${port}`,
      entries: [{ entry: `host.internal:${port}`, callIds: ["call_1_1"], programs: ["curl"] }],
      left: [{ host: "denied.example:80" }],
    });
    const text = await run("sessions", "egress", id, "--propose");
    expect(text.stdout).toContain(`  network = "allowlist:host.internal:${port}"`);
    expect(text.stdout).toContain(`  host.internal:${port}  curl in call_1_1`);
  });

  it("is learned with --network learn, which warns, and works when it is pasted", async () => {
    const url = `http://host.internal:${port}/`;
    const curl = ["curl", "-s", url, "--next", "-s", "-o", "/dev/null", "http://10.1.2.3/"];
    const learned = await run("exec", "--network", `learn:host.internal:${port}`, "--", ...curl);
    expect(learned.stdout).toBe("answer\n");
    expect(learned.stderr).toContain("every public host");
    const network = /network = "(\S+)"/.exec(learned.stderr)?.[1] ?? "";
    expect(network).toBe(`allowlist:host.internal:${port}`);
    expect(learned.stderr).toMatch(
      /Tried in vain, and not on the list:\n {2}10\.1\.2\.3:80 .*a private address/,
    );
    expect((await run("exec", "--network", network, "--", "curl", "-s", url)).stdout).toBe("answer\n");
    const script = join(folder.path, "learn.json");
    await writeFile(script, JSON.stringify({ steps: [shell(`curl -s ${url}`), { text: "done" }] }));
    const flags = ["--network", `learn:host.internal:${port}`, "--script", script, "go"];
    const told = await run("run", ...flags);
    expect(told.stderr).toContain(`  network = "${network}"\nEach entry was needed by:\n`);
    expect(told.stderr).toContain("every public host");
    const events = jsonLines((await run("run", "--json", ...flags)).stdout);
    expect(events.at(-1)).toMatchObject({
      ...{ type: "egress.proposed", network },
      entries: [{ entry: `host.internal:${port}`, call_ids: ["call_1_1"] }],
    });
  });

  it("is bounded for a program that tries thousands of names", async () => {
    const script = join(folder.path, "many.json");
    const flood = `import socket
for i in range(20000):
  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  name = f"h{i}".encode()
  s.sendto(b"\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + bytes([len(name)]) + name + b"\\7example\\0\\0\\1\\0\\1", ("127.83.0.1", 53))
  if i % 100 == 0: s.settimeout(5); s.recv(512)
  s.close()
`;
    const steps = [shell(`python3 -c '${flood}' 2>&1 | tail -n 1`), { text: "done" }];
    await writeFile(script, JSON.stringify({ steps }));
    const network = ["--network", `allowlist:host.internal:${port}`];
    const flooded = await run("run", "--json", ...network, "--script", script, "go");
    expect(flooded.exitCode, flooded.stderr).toBe(0);
    const attempts = jsonLines(flooded.stdout).filter(({ type }) => type === "egress.attempted");
    const total = attempts.reduce((sum, { count }) => sum + (count as number), 0);
    expect(total).toBeGreaterThan(5000);
    expect(attempts.length).toBeLessThan(1100);
  });
});
