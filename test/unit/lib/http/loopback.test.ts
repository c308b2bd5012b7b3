import { createServer } from "node:http";
import { expect, it } from "vitest";
import { isLoopbackHost, isLoopbackUrl, listenOnLoopback } from "../../../../src/lib/http/loopback.js";

it.each(["localhost", "localhost:80", "127.0.0.1", "127.0.0.1:4000", "LOCALHOST:1"])(
  "the host %s is loopback",
  (host) => {
    expect(isLoopbackHost(host)).toBe(true);
  },
);

it.each([
  undefined,
  "",
  "evil.example",
  "localhost.evil.example",
  "localhost@evil.example",
  "127.0.0.1.evil.example",
  "a b",
])("the host %j is not loopback", (host) => {
  expect(isLoopbackHost(host)).toBe(false);
});

it("an origin that is no address is not loopback", () => {
  expect(isLoopbackUrl("http://localhost:5000")).toBe(true);
  for (const origin of ["null", "", "https://evil.example", "file://"])
    expect(isLoopbackUrl(origin)).toBe(false);
});

it("a server listens on 127.0.0.1 alone", async () => {
  const server = createServer();
  const address = await listenOnLoopback(server, 0);
  expect(address).toMatch(/^127\.0\.0\.1:[0-9]+$/);
  expect(server.address()).toMatchObject({ address: "127.0.0.1" });
  server.close();
});
