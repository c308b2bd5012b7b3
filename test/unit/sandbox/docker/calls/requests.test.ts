import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { readEnvironment } from "../../../../../src/lib/env.js";
import { connectEngine } from "../../../../../src/sandbox/docker/connect.js";
import type { Engine } from "../../../../../src/sandbox/docker/engine-types.js";
import { fakeEngine, reply } from "../../../../support/fake-engine.js";

const env = readEnvironment({ HOME: "/proc/nonexistent" });

/** The one request with which the engine is asked to do something: its method, path, query and body. */
async function asked(call: (engine: Engine) => Promise<unknown>, answer: object = {}) {
  const bodies: Promise<string>[] = [];
  await using fake = await fakeEngine((request, response) => {
    bodies.push(text(request));
    request.on("end", () => reply(response, 200, answer));
  });
  await call(await connectEngine({ env, endpoint: fake.address }));
  const [method, target = ""] = fake.requests.at(-1)?.split(" ") ?? [];
  const url = new URL(target, "http://engine.test");
  const body = await bodies.at(-1);
  return {
    request: `${method} ${url.pathname}`,
    query: Object.fromEntries(url.searchParams),
    body: body === "" ? null : body,
  };
}

const tar = () => Readable.from([Buffer.from("tar")]);

describe("a request to the engine", () => {
  it.each<[string, (engine: Engine) => Promise<unknown>, string, Record<string, string>, object?]>([
    ["starts a container", (engine) => engine.startContainer("c/d"), "POST /containers/c%2Fd/start", {}],
    [
      "kills for good",
      (engine) => engine.killContainer("c"),
      "POST /containers/c/kill",
      { signal: "SIGKILL" },
    ],
    [
      "sends the given signal",
      (engine) => engine.killContainer("c", "SIGTERM"),
      "POST /containers/c/kill",
      { signal: "SIGTERM" },
    ],
    ["pauses", (engine) => engine.pauseContainer("c"), "POST /containers/c/pause", {}],
    ["unpauses", (engine) => engine.unpauseContainer("c"), "POST /containers/c/unpause", {}],
    [
      "removes a container with its volumes, running or not",
      (engine) => engine.removeContainer("c"),
      "DELETE /containers/c",
      { force: "true", v: "true" },
    ],
    [
      "asks for the size of what was written",
      (engine) => engine.writtenBytes("c"),
      "GET /containers/c/json",
      { size: "true" },
    ],
    [
      "lists containers that have ended too",
      (engine) => engine.listContainers(["a=b"]),
      "GET /containers/json",
      { all: "true", filters: '{"label":["a=b"]}' },
      [],
    ],
    [
      "attaches all of a container's streams",
      // The answer is none of an engine that gives a stream, which only the request matters for here.
      (engine) => engine.attachContainer("c").catch(() => undefined),
      "POST /containers/c/attach",
      { stream: "true", stdin: "true", stdout: "true", stderr: "true" },
    ],
    [
      "waits for a removal",
      (engine) => engine.waitRemoved("c"),
      "POST /containers/c/wait",
      { condition: "removed" },
    ],
    [
      "lists volumes by label",
      (engine) => engine.listVolumes(["a"]),
      "GET /volumes",
      { filters: '{"label":["a"]}' },
    ],
    ["removes a volume", (engine) => engine.removeVolume("a b"), "DELETE /volumes/a%20b", {}],
    ["removes an image", (engine) => engine.removeImage("a/b:c"), "DELETE /images/a/b:c", {}],
    [
      "tags with a tag",
      (engine) => engine.tagImage("a", "host:5000/b:c"),
      "POST /images/a/tag",
      { repo: "host:5000/b", tag: "c" },
    ],
    [
      "tags as latest without one",
      (engine) => engine.tagImage("a", "host:5000/b"),
      "POST /images/a/tag",
      { repo: "host:5000/b", tag: "latest" },
    ],
    ["pulls a tag", (engine) => engine.pullImage("b:c"), "POST /images/create", { fromImage: "b", tag: "c" }],
    [
      "pulls what has a digest by it",
      (engine) => engine.pullImage("b@sha256:12"),
      "POST /images/create",
      { fromImage: "b", tag: "sha256:12" },
    ],
    [
      "imports an image under its name and tag",
      (engine) => engine.importImage(tar(), "b:c"),
      "POST /images/create",
      { fromSrc: "-", repo: "b:c", tag: "c" },
    ],
    [
      "puts files where they belong",
      (engine) => engine.putArchive("c", "/to", tar()),
      "PUT /containers/c/archive",
      { path: "/to" },
    ],
    ["asks for the disk", (engine) => engine.diskUsage(), "GET /system/df", {}],
  ])("%s", async (_what, call, request, query, answer) => {
    expect(await asked(call, answer)).toMatchObject({ request, query });
  });

  it("has all that a build needs, and only what was asked for", async () => {
    const build = { t: "a:b", dockerfile: "Dockerfile", rm: "true", forcerm: "true" };
    expect((await asked((engine) => engine.buildImage(tar(), { tag: "a:b" }))).query).toEqual(build);
    const options = { tag: "a:b", dockerfile: "D", buildArgs: { A: "1" }, labels: { l: "2" } };
    const whole = await asked((engine) => engine.buildImage(tar(), { ...options, hasNetwork: false }));
    expect(whole).toEqual({
      request: "POST /build",
      query: { ...build, dockerfile: "D", buildargs: '{"A":"1"}', labels: '{"l":"2"}', networkmode: "none" },
      body: "tar",
    });
  });

  it("makes a volume of the engine's own kind", async () => {
    const answer = { Name: "v", Mountpoint: "/m" };
    const { request, body } = await asked(
      (engine) => engine.createVolume("v", { l: "1" }, { o: "x" }),
      answer,
    );
    expect(request).toBe("POST /volumes/create");
    expect(JSON.parse(body ?? "")).toEqual({
      ...{ Name: "v", Driver: "local", Labels: { l: "1" }, DriverOpts: { o: "x" } },
    });
  });

  it("asks only for what happened to one container, up to now", async () => {
    const { request, query } = await asked((engine) => engine.containerEvents("c"), { Action: "x" });
    expect(request).toBe("GET /events");
    expect(query).toMatchObject({ since: "1", filters: '{"type":["container"],"container":["c"]}' });
    expect(Math.abs(Number(query.until) - Date.now() / 1000)).toBeLessThan(3600);
  });
});

describe("the name of an image", () => {
  it.each(["a", "a:B", "Host.example:5000/a/b", "a@sha256:12", "sha256:12", "_a", "a.b-c_d"])(
    "%s is asked for as it is",
    async (name) => {
      const image = { Id: "i", Size: 1, Architecture: "x" };
      const { request } = await asked((engine) => engine.inspectImage(name), image);
      expect(request).toBe(`GET /images/${name}/json`);
    },
  );

  it.each([
    ["", /NAME:TAG/],
    ["-a", /NAME:TAG/],
    ["a b", /NAME:TAG/],
    ["a?b", /NAME:TAG/],
    ["a/../b", /NAME:TAG/],
    ["a//b", /NAME:TAG/],
    ["a/B", /no capital letters/],
    ["Abc/Def:x", /no capital letters/],
  ])("%j is refused before the engine hears of it", async (name, hint) => {
    await using fake = await fakeEngine();
    const engine = await connectEngine({ env, endpoint: fake.address });
    const before = fake.requests.length;
    await expect(engine.inspectImage(name)).rejects.toMatchObject({
      code: "usage.invalid",
      hint: expect.stringMatching(hint),
    });
    expect(fake.requests).toHaveLength(before);
  });
});

describe("a build that fails", () => {
  it("shows the last twenty lines of its log, and passes each one on", async () => {
    const steps = Array.from({ length: 25 }, (_, index) => JSON.stringify({ stream: `line ${index}\n` }));
    const log = [...steps, JSON.stringify({ error: "mkdir /x: no space left on device" })].join("\n");
    await using fake = await fakeEngine((_, response) => response.end(log));
    const engine = await connectEngine({ env, endpoint: fake.address });
    const shown: string[] = [];
    const built = engine.buildImage(tar(), { tag: "a:b", onProgress: (line) => shown.push(line) });
    const failure = await built.catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "image.build-failed", errno: "ENOSPC" });
    const lines = (failure as Error).message.split(/\n(?: {2})?/);
    expect(lines).toHaveLength(22);
    expect([lines[1], ...lines.slice(-2)]).toEqual([
      "line 5",
      "line 24",
      "the disk of the container engine is full",
    ]);
    expect(shown).toHaveLength(25);
  });
});
