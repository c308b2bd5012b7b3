import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openServed, type Served } from "../../support/served.js";

let served: Served;

beforeAll(async () => {
  served = await openServed({ limits: { maxLifeMs: 3_600_000 } });
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
});

async function send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${served.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${served.tokens[0]}`, ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, text, type: response.headers.get("content-type") };
}

describe("labels", () => {
  it("find the sandboxes that have all of them", async () => {
    const labels = { team: "a b&c", run: "1=2" };
    await using one = await served.client.createSandbox({ labels });
    await using other = await served.client.createSandbox({ labels: { team: "a b&c" } });
    expect(one.record.labels).toEqual(labels);
    const found = async (wanted: Record<string, string>) =>
      (await served.client.listSandboxes({ labels: wanted })).map(({ id }) => id).toSorted();
    expect(await found({ team: "a b&c" })).toEqual([one.id, other.id].toSorted());
    expect(await found(labels)).toEqual([one.id]);
    expect(await found({ team: "a" })).toEqual([]);
    const { text } = await send("GET", "/v1/sandboxes?label=run%3D1%3D2&label=team%3Da+b%26c");
    expect(JSON.parse(text).sandboxes).toMatchObject([{ id: one.id, labels }]);
    expect((await send("GET", "/v1/sandboxes?label=run")).status).toBe(400);
    const tooMany = Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`l${index}`, ""]));
    expect(await send("POST", "/v1/sandboxes", { labels: tooMany })).toMatchObject({
      status: 400,
      text: expect.stringContaining("at most 64 labels"),
    });
  });
});

describe("an Idempotency-Key", () => {
  const key = { idempotencyKey: "deploy 7" };

  it("gives the same sandbox to two requests at once and to a later one, and another one once that is gone", async () => {
    const labels = { of: "a key" };
    const both = await Promise.all(
      [1, 2].map(async () => await served.client.createSandbox({ labels }, key)),
    );
    const again = await served.client.createSandbox({ labels }, key);
    expect(new Set([...both, again].map(({ id }) => id)).size).toBe(1);
    expect(await served.client.listSandboxes({ labels })).toHaveLength(1);
    expect(await send("POST", "/v1/sandboxes", {}, { "idempotency-key": "deploy 7" })).toMatchObject({
      status: 409,
      text: expect.stringContaining("Idempotency-Key"),
    });
    await using others = await served.otherClient.createSandbox({}, key);
    expect(others.id).not.toBe(again.id);
    await again.delete();
    await using next = await served.client.createSandbox({}, key);
    expect(next.id).not.toBe(again.id);
  });

  it("is free again after a create that failed", async () => {
    const failed = { idempotencyKey: "failed" };
    await expect(served.client.createSandbox({ image: "brig/none:1" }, failed)).rejects.toMatchObject({
      code: "image.missing",
    });
    await using sandbox = await served.client.createSandbox({}, failed);
    expect((await sandbox.exec(["true"])).exitCode).toBe(0);
  });

  it("must be a text that fits into a header", async () => {
    const long = { "idempotency-key": "x".repeat(256) };
    expect((await send("POST", "/v1/sandboxes", {}, long)).status).toBe(400);
  });
});

it("an extension lets a sandbox live longer, but not longer than the service lets any", async () => {
  await using sandbox = await served.client.createSandbox({ maxLifeMs: 20_000 });
  const before = Date.now();
  const { expiresAt } = await sandbox.extend(60_000);
  expect(Date.parse(expiresAt)).toBeGreaterThanOrEqual(before + 60_000);
  expect(Date.parse(expiresAt)).toBeLessThanOrEqual(Date.now() + 60_000);
  const longest = await sandbox.extend(30 * 24 * 3_600_000);
  expect(Date.parse(longest.expiresAt) - Date.parse(longest.createdAt)).toBe(3_600_000);
  expect((await served.client.getSandbox(sandbox.id)).record).toEqual(longest);
  expect((await send("POST", `/v1/sandboxes/${sandbox.id}/extend`, { lifeMs: 0 })).status).toBe(400);
  await sandbox.extend(300);
  await expect
    .poll(async () => await served.client.getSandbox(sandbox.id).catch(({ code }) => code))
    .toBe("serve.unknown");
});

describe("the network", () => {
  it("is none, and stays none, without --allow-network", async () => {
    await using sandbox = await served.client.createSandbox();
    expect(sandbox.record.network).toBe("none");
    const path = `/v1/sandboxes/${sandbox.id}/network`;
    const refused = await send("PUT", path, { network: "allowlist:example.com" });
    expect(refused).toMatchObject({ status: 400, text: expect.stringContaining("--allow-network") });
    await expect(served.client.createSandbox({ network: "allowlist:example.com" })).rejects.toThrow(
      "--allow-network",
    );
  });

  it("can be opened and closed while the sandbox runs", async () => {
    await using open = await openServed({ allowsNetwork: true });
    await using sandbox = await open.client.createSandbox();
    expect(sandbox.record.network).toBe("none");
    // Nothing has this name, so that the request fails in any case: the cause says whether that is because of the list.
    const isRefused = async () => {
      const { exitCode, causes } = await sandbox.exec(["curl", "-sf", "-m", "20", "http://nowhere.invalid/"]);
      expect(exitCode).not.toBe(0);
      return causes.some((cause) => cause.kind === "network-rule" && cause.denial === "no-rule");
    };
    expect(await isRefused()).toBe(true);
    expect((await sandbox.setNetwork("allowlist:NOWHERE.invalid")).network).toBe("allowlist:nowhere.invalid");
    expect(await isRefused()).toBe(false);
    expect((await open.client.getSandbox(sandbox.id)).record.network).toBe("allowlist:nowhere.invalid");
    expect((await sandbox.setNetwork("none")).network).toBe("none");
    expect(await isRefused()).toBe(true);
    for (const wrong of ["allowlist:*", "allowlist:a b", "full", "nonsense", ""])
      await expect(sandbox.setNetwork(wrong as "none"), wrong).rejects.toMatchObject({
        code: "usage.invalid",
      });
    const ownMachine = { network: "allowlist:127.0.0.1:80" } as const;
    await expect(sandbox.setNetwork(ownMachine.network)).rejects.toMatchObject({ code: "policy.invalid" });
    await expect(open.client.createSandbox(ownMachine)).rejects.toMatchObject({ code: "policy.invalid" });
    await using full = await open.client.createSandbox({ network: "full" });
    await expect(full.setNetwork("none")).rejects.toMatchObject({ code: "policy.not-enforced" });
    await using listed = await open.client.createSandbox({ network: "allowlist:example.com" });
    expect(listed.record.network).toBe("allowlist:example.com");
  });
});

it("metrics need a token, and count what has happened", async () => {
  expect((await fetch(`${served.url}/metrics`)).status).toBe(401);
  const value = async (name: string) =>
    Number(
      / (\S+)$/.exec(
        (await send("GET", "/metrics")).text.split("\n").find((line) => line.startsWith(`${name} `)) ?? " 0",
      )?.[1],
    );
  const names = [
    "brig_sandboxes_created_total",
    'brig_failures_total{code="image.missing"}',
    "brig_exec_duration_seconds_count",
    "brig_sandboxes",
  ];
  const values = async () => await Promise.all(names.map(value));
  const [created = 0, missing = 0, execs = 0, open = 0] = await values();
  await using sandbox = await served.client.createSandbox();
  await sandbox.exec(["true"]);
  await sandbox.stream(["false"]);
  await expect(served.client.createSandbox({ image: "brig/none:1" })).rejects.toThrow();
  expect(await values()).toEqual([created + 1, missing + 1, execs + 2, open + 1]);
  await sandbox.delete();
  expect(await value("brig_sandboxes")).toBe(open);
  const { type, text } = await send("GET", "/metrics");
  expect(type).toBe("text/plain; version=0.0.4; charset=utf-8");
  for (const line of [
    "brig_sandboxes_created_total counter",
    "brig_failures_total counter",
    "brig_exec_duration_seconds histogram",
    "brig_sandboxes gauge",
  ])
    expect(text).toContain(`# TYPE ${line}\n`);
});
