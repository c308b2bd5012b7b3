import { Validator } from "@seriousme/openapi-schema-validator";
import { expect, it } from "vitest";
import type { Answer, Calls } from "../../../../../src/services/serve/http/response.js";
import { openApiDescription } from "../../../../../src/services/serve/wire/openapi.js";
import {
  ARCHIVE_TYPE,
  METRICS_TYPE,
  type RouteName,
  routes,
} from "../../../../../src/services/serve/wire/routes.js";
import { openSocket } from "../../../../support/web-socket-client.js";
import { serveCalls } from "../http-fixture.js";

interface Operation {
  operationId: RouteName;
  security?: object[];
  parameters: { name: string; in: string; required: boolean }[];
  requestBody?: { required: boolean; content: Record<string, unknown> };
  responses: Record<string, { content?: Record<string, unknown> }>;
}

const description = openApiDescription("1.2.3");
/** What comes of a request to a port is the business of a server in the sandbox. */
const { "/v1/sandboxes/{id}/ports/{port}/{path}": ports, ...paths } = description.paths as Record<
  string,
  Record<string, Operation>
>;
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
);

it("the description is one of OpenAPI 3.1", async () => {
  const validator = new Validator();
  expect(await validator.validate(structuredClone(description))).toMatchObject({ valid: true });
  expect(validator.version).toBe("3.1");
  const broken = { ...structuredClone(description), paths: { "/x": { get: { responses: 1 } } } };
  expect(await new Validator().validate(broken)).toMatchObject({ valid: false });
});

it("it has each route once, and no other", () => {
  expect(operations.map(({ operationId }) => operationId).toSorted()).toEqual(Object.keys(routes).toSorted());
});

it("it has one path for the ports of sandboxes, with all methods", () => {
  expect(Object.keys(ports ?? {}).toSorted()).toEqual([
    "delete",
    "get",
    "head",
    "options",
    "patch",
    "post",
    "put",
  ]);
  const names = Object.values(ports ?? {}).flatMap(({ parameters }) => parameters.map(({ name }) => name));
  expect(new Set(names)).toEqual(new Set(["id", "port", "path"]));
});

it("each request that it describes is answered, with the status and the type that it says", async () => {
  const called: RouteName[] = [];
  const calls = Object.fromEntries(
    Object.keys(routes).map((name) => [
      name,
      async (): Promise<Answer> => {
        called.push(name as RouteName);
        return sample(name as RouteName);
      },
    ]),
  ) as unknown as Calls;
  await using service = await serveCalls(calls);
  for (const { path, method, operationId, parameters, requestBody, responses, security } of operations) {
    const url = new URL(path.replaceAll(/\{\w+\}/g, "abc"), service.url);
    for (const { name } of parameters.filter((one) => one.in === "query" && one.required))
      url.searchParams.set(name, "/a");
    const isJson = requestBody?.content["application/json"] !== undefined;
    const send = async (headers: Record<string, string>) =>
      await fetch(url, {
        method: method.toUpperCase(),
        headers,
        body: requestBody === undefined ? undefined : isJson ? jsonOf(operationId) : "x",
      });
    const bare = await send({});
    expect(bare.status, operationId).toBe(security === undefined ? 401 : 200);
    const response = await send({ authorization: "Bearer token" });
    const [status = ""] = Object.keys(responses);
    if (status === "101") {
      expect(response.status, operationId).toBe(426);
      const client = await openSocket(`${url}`, { headers: { authorization: "Bearer token" } });
      expect(await client.closed, operationId).toMatchObject({ code: 1000 });
      continue;
    }
    expect(`${response.status}`, operationId).toBe(status);
    expect(called.at(-1)).toBe(operationId);
    const types = Object.keys(responses[status]?.content ?? {});
    expect(types, operationId).toEqual(
      response.headers.get("content-type") === null ? [] : [response.headers.get("content-type")],
    );
    await response.arrayBuffer();
    if (parameters.some((one) => one.in === "query" && one.required)) {
      url.search = "";
      expect((await send({ authorization: "Bearer token" })).status, operationId).toBe(400);
    }
  }
  expect(new Set(called).size).toBe(operations.length);
});

/** What a request needs in its body. */
const needed: Partial<Record<RouteName, object>> = {
  exec: { argv: ["true"] },
  execStream: { argv: ["true"] },
  startProcess: { argv: ["true"] },
  resizeProcess: { rows: 24, cols: 80 },
  signalProcess: { signal: "SIGTERM" },
  extendSandbox: { lifeMs: 1000 },
  restore: { point: 1 },
  setNetwork: { network: "none" },
  makeDirectory: { path: "/a" },
  moveFile: { from: "/a", to: "/b" },
};

function jsonOf(name: RouteName): string {
  return JSON.stringify(needed[name] ?? {});
}

function sample(name: RouteName): Answer {
  const { body, status } = routes[name].answer as { body: unknown; status: number };
  if (status === 101) return { kind: "socket", serve: async () => undefined };
  if (body === null) return { kind: "nothing" };
  if (body === "bytes") return { kind: "bytes", bytes: Buffer.from("x") };
  if (name === "metrics") return { kind: "text", type: METRICS_TYPE, text: "x" };
  if (name === "readArchive") return { kind: "stream", type: ARCHIVE_TYPE, pieces: onePiece() };
  if (name === "execStream" || name === "watchFiles")
    return { kind: "lines", run: async (send) => await send({ type: "x" }) };
  return { kind: "json", value: {} };
}

async function* onePiece(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("x");
}
