import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { readEnvironment } from "../../../../src/lib/env.js";
import { probeEngine } from "../../../../src/sandbox/docker/engine-probe.js";
import { type Answer, fakeEngine, reply } from "../../../support/fake-engine.js";

async function probed(answer: Answer, { needsRuntimes = false, withinMs = 60_000 } = {}) {
  await using fake = await fakeEngine(answer);
  const env = readEnvironment({ HOME: "/proc/nonexistent", DOCKER_HOST: fake.address });
  const probe = await probeEngine({ env, image: "a:b", needsRuntimes, withinMs });
  return { probe, requests: fake.requests.toSorted() };
}

const info = { Runtimes: { runc: {}, runsc: null }, Warnings: ["x".repeat(100_000)] };
const withImage =
  (status: number): Answer =>
  ({ url }, response) =>
    url === "/info" ? reply(response, 200, info) : reply(response, status, {});

describe("a look at the engine before a start", () => {
  it("says whether the image is there, and asks for nothing else", async () => {
    const { probe, requests } = await probed(withImage(200));
    expect(probe).toEqual({ kind: "answered", hasImage: true, runtimes: [] });
    expect(requests).toEqual(["GET /images/a:b/json"]);
    expect((await probed(withImage(404))).probe).toMatchObject({ hasImage: false });
  });

  it("names the runtimes when they are needed, from an answer as long as real ones are", async () => {
    const { probe, requests } = await probed(withImage(404), { needsRuntimes: true });
    expect(probe).toEqual({ kind: "answered", hasImage: false, runtimes: ["runc", "runsc"] });
    expect(requests).toEqual(["GET /images/a:b/json", "GET /info"]);
    const odd: Answer = ({ url }, response) =>
      url === "/info" ? response.end("{") : reply(response, 200, {});
    expect((await probed(odd, { needsRuntimes: true })).probe).toMatchObject({
      hasImage: true,
      runtimes: [],
    });
  });

  it("leaves to the start what it cannot tell", async () => {
    expect((await probed(withImage(500))).probe).toEqual({ kind: "unclear" });
    expect((await probed(() => undefined, { withinMs: 50 })).probe).toEqual({ kind: "unclear" });
  });

  it("is silent only when no engine answers", async () => {
    const directory = await mkdtemp(join(tmpdir(), "brig-probe-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    const options = { image: "a:b", needsRuntimes: false, withinMs: 60_000 };
    const env = readEnvironment({ HOME: directory, DOCKER_HOST: `unix://${directory}/absent.sock` });
    expect(await probeEngine({ ...options, env })).toEqual({ kind: "silent" });
    const broken = (await probed((request) => request.socket.destroy())).probe;
    expect(broken).toEqual({ kind: "silent" });
  });
});
