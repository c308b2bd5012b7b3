import { expect, it } from "vitest";
import { parseMcpServers } from "../../../../src/agent/config/mcp-servers-schema.js";
import { serversOf } from "../../../../src/services/acp/editor-servers.js";

const program = (name: string) => ({ name, command: "npx", args: ["x"], env: [{ name: "A", value: "b" }] });

it("programs and addresses become servers as in config.toml, in a container of their own", () => {
  const http = {
    type: "http" as const,
    name: "far",
    url: "https://h/",
    headers: [{ name: "x-a", value: "b" }],
  };
  const { servers, warnings } = serversOf([program("near"), http]);
  expect(parseMcpServers(servers)).toMatchObject({
    near: { command: "npx", args: ["x"], env: { A: "b" }, sandbox: "own", network: "none" },
    far: { url: "https://h/", http_headers: { "x-a": "b" } },
  });
  expect(warnings).toEqual([]);
});

it("whatever their names are, each has one of its own that config.toml could have", () => {
  const names = [
    "my server",
    "my server",
    "my_server",
    "",
    "__proto__",
    "__proto__",
    "ü".repeat(200),
    "a".repeat(99),
    "a".repeat(99),
  ];
  const { servers } = serversOf(names.map(program));
  expect(Object.keys(servers)).toHaveLength(names.length);
  expect(Object.keys(parseMcpServers(servers))).toHaveLength(names.length);
});

it("one that speaks SSE is left out, and named", () => {
  const sse = { type: "sse" as const, name: "old", url: "https://h/", headers: [] };
  expect(serversOf([sse])).toEqual({
    servers: {},
    warnings: ["the MCP server old is left out: brig does not speak SSE"],
  });
});
