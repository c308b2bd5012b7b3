import { expect, it } from "vitest";
import { readEnvironment } from "../../../../src/lib/env.js";
import { connectEngine } from "../../../../src/sandbox/docker/connect.js";
import { type Answer, fakeEngine, reply } from "../../../support/fake-engine.js";

const env = readEnvironment({ HOME: "/proc/nonexistent" });
const info = { Driver: "overlay2", NCPU: 3, MemTotal: 2 ** 32 };

it("is asked together with the version, and only once", async () => {
  const urls: (string | undefined)[] = [];
  const answer: Answer = ({ url }, response) => {
    urls.push(url);
    reply(response, 200, info);
  };
  await using fake = await fakeEngine(answer);
  const engine = await connectEngine({ env, endpoint: fake.address, asksEarly: true });
  expect(await Promise.all([engine.info(), engine.info()])).toMatchObject([{ cpus: 3 }, { cpus: 3 }]);
  expect(urls).toEqual(["/info"]);
});

it.each([
  [{ Rootless: true, CgroupVersion: "1" }, ["name=rootless"], false],
  [{ Rootless: true, CgroupVersion: "2" }, ["name=rootless"], true],
  [{ SecurityOptions: ["name=rootless"], CgroupVersion: "1" }, ["name=rootless"], false],
  [{ Rootless: true, SecurityOptions: ["name=rootless"], CgroupVersion: "2" }, ["name=rootless"], true],
  [{ Rootless: false, CgroupVersion: "1" }, [], true],
])("tells from %j who has the engine, and whether it can limit anything", async (says, options, limits) => {
  const limited = { MemoryLimit: true, SwapLimit: true, CpuCfsQuota: true, PidsLimit: true };
  await using fake = await fakeEngine((_, response) =>
    reply(response, 200, { ...info, ...limited, ...says }),
  );
  const engine = await connectEngine({ env, endpoint: fake.address });
  expect((await engine.info()).securityOptions).toEqual(options);
  const all = { memory: limits, swap: limits, cpu: limits, pids: limits };
  expect((await engine.health()).limits).toEqual(all);
});

it("is asked again in the agreed API version where the engine answers only requests with one", async () => {
  const answer: Answer = ({ url }, response) =>
    url === "/v1.41/info" ? reply(response, 200, info) : reply(response, 404, { message: "page not found" });
  await using fake = await fakeEngine(answer, { version: { ApiVersion: "1.41" } });
  const engine = await connectEngine({ env, endpoint: fake.address, asksEarly: true });
  expect(await engine.info()).toMatchObject({ cpus: 3, apiVersion: "1.41" });
});

it("is taken from an older engine as well, and not asked again", async () => {
  const urls: (string | undefined)[] = [];
  const answer: Answer = ({ url }, response) => {
    urls.push(url);
    reply(response, 200, info);
  };
  await using fake = await fakeEngine(answer, { version: { ApiVersion: "1.41" } });
  const engine = await connectEngine({ env, endpoint: fake.address, asksEarly: true });
  expect(await engine.info()).toMatchObject({ cpus: 3, apiVersion: "1.41" });
  expect(urls).toEqual(["/info"]);
});

it("is asked again where the early answer was lost, and its failure is reported then", async () => {
  let asked = 0;
  const answer: Answer = (_request, response) => {
    asked += 1;
    reply(response, 500, { message: `failure ${asked}` });
  };
  await using fake = await fakeEngine(answer);
  const engine = await connectEngine({ env, endpoint: fake.address, asksEarly: true });
  await expect(engine.info()).rejects.toMatchObject({ code: "engine.failed" });
  expect(asked).toBe(2);
});
