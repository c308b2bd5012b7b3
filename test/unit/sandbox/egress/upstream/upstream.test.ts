import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { describe, expect, it } from "vitest";
import { isBypassed, readUpstream } from "../../../../../src/sandbox/egress/read-upstream.js";
import { parseTarget } from "../../../../../src/sandbox/egress/rules/target.js";
import { companyProxy } from "../../../../support/company-proxy.js";
import { dialTo, egressPlace, eventually, tcpServer } from "../../../../support/egress-place.js";
import { selfSigned } from "../../../../support/self-signed.js";

describe("an upstream proxy", () => {
  it("gets tunnels for what is allowed, and no name is looked up here", async () => {
    await using server = await echo();
    await using proxy = await companyProxy({ tunnelPorts: [server.port] });
    await using place = await egressPlace({
      ...{ hosts: [`a.example:${server.port}`], upstream: readUpstream(proxy.url, {}) },
      resolve: async () => [],
    });
    const { socket, received, ended } = await dialTo(place.proxyPort);
    socket.write(`CONNECT a.example:${server.port} HTTP/1.1\r\nHost: a.example:${server.port}\r\n\r\n`);
    await eventually(() => expect(received()).toContain("200 Connection established"));
    socket.end("through both");
    expect(await ended).toBe("end");
    expect(received()).toMatch(/\r\n\r\nthrough both$/);
    expect(received()).not.toContain("company");
    expect(proxy.asked).toMatchObject([{ line: `CONNECT a.example:${server.port}` }]);
    expect(place.lookups).toEqual([]);
    await eventually(() =>
      expect(place.attempts).toMatchObject([{ host: "a.example", outcome: { kind: "allowed" } }]),
    );
  });

  it("passes TLS in its tunnels", async () => {
    await using server = await webServer("tls");
    await using proxy = await companyProxy({ tunnelPorts: [server.port] });
    await using place = await egressPlace({
      hosts: [`host.example:${server.port}`],
      upstream: readUpstream(proxy.url, {}),
    });
    const socket = connect(place.proxyPort, "127.0.0.1");
    socket.write(`CONNECT host.example:${server.port} HTTP/1.1\r\nHost: host.example:${server.port}\r\n\r\n`);
    await once(socket, "data");
    const tls = connectTls({
      socket,
      servername: "host.example",
      ca: selfSigned.cert,
      rejectUnauthorized: false,
    });
    tls.write("GET / HTTP/1.1\r\nHost: host.example\r\nConnection: close\r\n\r\n");
    let text = "";
    for await (const chunk of tls) text += chunk;
    expect(text).toContain("served / to host.example");
  });

  it("gets plain HTTP as a request for the URL, since it may make no tunnels for it", async () => {
    await using server = await webServer("plain");
    await using proxy = await companyProxy({ tunnelPorts: [] });
    await using place = await egressPlace({ hosts: ["a.example"], upstream: readUpstream(proxy.url, {}) });
    const url = `http://a.example:${server.port}/x?y=1`;
    const request = `GET ${url} HTTP/1.1\r\nHost: a.example:${server.port}\r\nProxy-Authorization: Basic bWluZQ==\r\n\r\n`;
    const { socket, received } = await dialTo(place.proxyPort);
    socket.write(request);
    await eventually(() => expect(received()).toContain(`served /x?y=1 to a.example:${server.port}`));
    socket.write(request);
    await eventually(() => expect(proxy.asked).toHaveLength(2));
    expect(proxy.asked.map(({ line }) => line)).toEqual([`GET ${url}`, `GET ${url}`]);
    expect(received()).not.toMatch(/proxy-/i);
    socket.destroy();
  });

  it("that refuses, is gone or falls silent is named as the reason, without its password", async () => {
    await using proxy = await companyProxy({ tunnelPorts: [] });
    await using silent = await tcpServer(() => undefined);
    const cases = [
      [proxy.url, "the upstream proxy answered 403"],
      [proxy.urlWithoutPassword, "the upstream proxy answered 407"],
      ["http://127.0.0.1:1", "the upstream proxy cannot be used: ECONNREFUSED"],
      [`http://user:p%40ss@127.0.0.1:${silent.port}`, "the upstream proxy cannot be used: ETIMEDOUT"],
      [`https://user:p%40ss@127.0.0.1:${silent.port}`, "the upstream proxy cannot be used: ETIMEDOUT"],
    ] as const;
    for (const [url, reason] of cases) {
      await using place = await egressPlace({
        ...{ hosts: ["a.example"], upstream: readUpstream(url, {}), limits: { connectTimeoutMs: 500 } },
      });
      const { socket, received, ended } = await dialTo(place.proxyPort);
      socket.write("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n");
      await ended;
      expect(received()).toContain(`a.example:443 is allowed, but cannot be reached: ${reason}.`);
      expect(received()).not.toMatch(/p@ss|p%40ss|user|dXNlcjpw/);
    }
  });

  it("is not asked for what no rule allows, for addresses that no rule names, and for localhost", async () => {
    await using proxy = await companyProxy({ tunnelPorts: [443] });
    await using place = await egressPlace({ hosts: ["@public"], upstream: readUpstream(proxy.url, {}) });
    for (const host of ["10.1.2.3", "169.254.169.254", "127.0.0.1", "localhost", "a.localhost", "[::1]"]) {
      const { socket, received, ended } = await dialTo(place.proxyPort);
      socket.write(`CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}:443\r\n\r\n`);
      await ended;
      expect(received(), host).toContain("403 Forbidden");
    }
    place.egress.setHosts(["b.example"]);
    const { socket, received, ended } = await dialTo(place.proxyPort);
    socket.write("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n");
    await ended;
    expect(received()).toContain("no rule of this sandbox's network allow-list allows a.example");
    expect(proxy.asked).toEqual([]);
  });

  it("is passed by for this machine itself and for what NO_PROXY names, whose addresses are checked", async () => {
    await using server = await echo();
    await using proxy = await companyProxy({ tunnelPorts: [server.port] });
    const hosts = [`host.internal:${server.port}`, `127.0.0.1:${server.port}`, `in.example:${server.port}`];
    await using place = await egressPlace({
      hosts,
      upstream: readUpstream(proxy.url, { NO_PROXY: ".in.example" }),
    });
    for (const host of ["host.internal", "127.0.0.1", "in.example"]) {
      const { socket, received } = await dialTo(place.proxyPort);
      socket.write(`CONNECT ${host}:${server.port} HTTP/1.1\r\nHost: ${host}:${server.port}\r\n\r\nhello`);
      await eventually(() => expect(received(), host).toMatch(/hello$/));
      socket.destroy();
    }
    expect(proxy.asked).toEqual([]);
    expect(place.lookups).toEqual(["in.example"]);
  });

  it("loses its connections when the rules no longer allow them, and keeps the others", async () => {
    await using server = await echo();
    await using proxy = await companyProxy({ tunnelPorts: [server.port] });
    const hosts = [`a.example:${server.port}`, `b.example:${server.port}`];
    await using place = await egressPlace({ hosts, upstream: readUpstream(proxy.url, {}) });
    const open = async (host: string) => {
      const dialled = await dialTo(place.proxyPort);
      dialled.socket.write(
        `CONNECT ${host}:${server.port} HTTP/1.1\r\nHost: ${host}:${server.port}\r\n\r\nhello`,
      );
      await eventually(() => expect(dialled.received()).toMatch(/hello$/));
      return dialled;
    };
    const [a, b] = [await open("a.example"), await open("b.example")];
    place.egress.setHosts([`b.example:${server.port}`]);
    expect(await a.ended).toBe("reset");
    b.socket.write(" again");
    await eventually(() => expect(b.received()).toMatch(/hello again$/));
    b.socket.destroy();
  });
});

describe("the setting of an upstream proxy", () => {
  it("is a URL, with a user and a password or without", () => {
    expect(readUpstream("http://proxy.example:3128", {})).toMatchObject({
      ...{ host: "proxy.example", port: 3128, usesTls: false, user: null },
    });
    expect(readUpstream("https://a:b%3Ac@[fd00::1]", {})).toMatchObject({
      ...{ host: "fd00::1", port: 443, usesTls: true, user: { name: "a", password: "b:c" } },
    });
    expect(readUpstream("proxy:3128", {})).toMatchObject({ host: "proxy", port: 3128 });
  });

  it("can be taken from the environment, where none is none", () => {
    expect(readUpstream("environment", {})).toBeNull();
    expect(readUpstream("environment", { HTTPS_PROXY: "http://p:1" })).toMatchObject({ host: "p", port: 1 });
    expect(readUpstream("environment", { all_proxy: "http://q:2" })).toMatchObject({ host: "q", port: 2 });
    expect(readUpstream("environment", { HTTP_PROXY: "http://plain:1" })).toBeNull();
  });

  it("that is none is refused without repeating it", () => {
    for (const text of [
      "socks5://user:secret@p:1",
      "http://",
      "http://user:secret@",
      "user:secret@p:99999",
      "",
    ])
      for (const [setting, variables] of [
        [text, {}],
        ["environment", { HTTPS_PROXY: text }],
      ] as const) {
        const read = () => readUpstream(setting, variables);
        expect(read, text).toThrow(/is not a URL of a proxy/);
        expect(read, text).not.toThrow(/secret/);
      }
  });

  it("leaves out what NO_PROXY names", () => {
    const list =
      "localhost, .corp.example *.lab.example one.example:8443 10.0.0.0/8,[fd00::1]:443,192.0.2.7 ,, %%";
    const proxy = readUpstream("http://p:1", { no_proxy: list });
    const passesBy = (host: string, port = 443) => {
      const target = parseTarget(host);
      return proxy !== null && target !== null && isBypassed(proxy, { target, port });
    };
    for (const host of [
      "localhost",
      "corp.example",
      "a.corp.example",
      "b.lab.example",
      "10.9.8.7",
      "192.0.2.7",
    ])
      expect(passesBy(host), host).toBe(true);
    expect(passesBy("one.example", 8443)).toBe(true);
    expect(passesBy("fd00::1")).toBe(true);
    for (const host of ["example", "xcorp.example", "one.example", "11.0.0.1", "fd00::2"])
      expect(passesBy(host), host).toBe(false);
    expect(passesBy("fd00::1", 80)).toBe(false);
    const none = readUpstream("http://p:1", { NO_PROXY: "*" });
    expect(none && isBypassed(none, { target: { kind: "name", name: "x" }, port: 1 })).toBe(true);
  });
});

async function echo() {
  return await tcpServer((socket) => socket.pipe(socket));
}

async function webServer(kind: "plain" | "tls") {
  const serve: Parameters<typeof createServer>[1] = (request, response) =>
    response.end(`served ${request.url} to ${request.headers.host}`);
  const server = kind === "plain" ? createServer(serve) : createTlsServer(selfSigned, serve);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
