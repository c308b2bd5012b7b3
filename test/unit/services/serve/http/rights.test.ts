import { describe, expect, it } from "vitest";
import type { Calls } from "../../../../../src/services/serve/http/response.js";
import { type RouteName, routes } from "../../../../../src/services/serve/wire/routes.js";
import { serveCalls } from "../http-fixture.js";

const looking = { seesAll: true, mayChange: false };

describe("a client that may only look", () => {
  it("is refused each request that changes something, and no other", async () => {
    const asked: string[] = [];
    const calls = Object.fromEntries(
      Object.keys(routes).map((name) => [
        name,
        async ({ rights }: { rights: unknown }) => {
          asked.push(name);
          return { kind: "json", value: { rights } };
        },
      ]),
    ) as unknown as Calls;
    await using served = await serveCalls(calls, { rights: looking });
    const changing = new Set<string>();
    for (const [name, { method, path }] of Object.entries(routes)) {
      if (name === "attachProcess") continue;
      const body = method === "GET" ? null : "{}";
      const response = await fetch(served.url + path.replaceAll(/\{\w+\}/g, "x"), {
        ...{ method, body, headers: { authorization: "Bearer token" } },
      });
      await response.body?.cancel();
      if (response.status === 403) changing.add(name);
      else expect(method).toBe("GET");
    }
    expect(asked.filter((name) => routes[name as RouteName].method !== "GET")).toEqual([]);
    expect(changing.has("exec") && changing.has("deleteSandbox") && changing.has("closeInput")).toBe(true);
  });
});
