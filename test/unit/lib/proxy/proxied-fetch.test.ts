import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { boundedFetch as mcpFetch } from "../../../../src/agent/mcp/client/connection/bounded-fetch.js";
import { postJson } from "../../../../src/agent/model/endpoint/http-fetch.js";
import { boundedFetch as loginFetch } from "../../../../src/agent/model/login/issuer/bounded-fetch.js";
import { proxiedFetch } from "../../../../src/lib/proxy/proxied-fetch.js";
import { readProxies } from "../../../../src/lib/proxy/proxies.js";
import { companyProxy } from "../../../support/company-proxy.js";
import { egressPlace, eventually, tcpServer } from "../../../support/egress-place.js";
import { selfSigned } from "../../../support/self-signed.js";

const AUTHORIZATION = `Basic ${Buffer.from("user:p@ss").toString("base64")}`;
const never = new AbortController().signal;

/** A server behind the proxy, which says what it was asked for. */
async function origin(kind: "plain" | "tls"): Promise<number> {
  const serve: Parameters<typeof createServer>[1] = async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    response.setHeader("x-proxy", String(request.headers["proxy-authorization"]));
    response.end(`${request.method} ${request.url} to ${request.headers.host}: ${body}`);
  };
  const server = kind === "plain" ? createServer(serve) : createTlsServer(selfSigned, serve);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const trustAnyone = () => vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");

describe("a request through a proxy", () => {
  it.each([
    [
      "of the model",
      async (url: URL, proxies: ReturnType<typeof readProxies>) =>
        await postJson(url, { headers: {}, body: "hello", signal: never, silence: never, proxies }),
    ],
    [
      "of the login",
      async (url: URL, proxies: ReturnType<typeof readProxies>) =>
        await loginFetch(undefined, proxies)(url.href, {
          ...{ method: "POST", body: "hello", headers: {}, redirect: "manual", signal: never },
        }),
    ],
    [
      "to an MCP server",
      async (url: URL, proxies: ReturnType<typeof readProxies>) =>
        await mcpFetch({ url: url.href, bearerToken: null, headers: {}, proxies })(url, {
          ...{ method: "POST", body: "hello" },
        }),
    ],
  ])("%s asks for the URL, or for a tunnel if that is https, with the password", async (_, send) => {
    trustAnyone();
    const [plain, tls] = [await origin("plain"), await origin("tls")];
    await using proxy = await companyProxy({ tunnelPorts: [tls] });
    const proxies = readProxies({ HTTP_PROXY: proxy.url, https_proxy: proxy.url });
    const one = await send(new URL(`http://api.test:${plain}/v1?a=b`), proxies);
    expect(await one.text()).toBe(`POST /v1?a=b to api.test:${plain}: hello`);
    expect(one.headers.get("x-proxy")).toBe("undefined");
    const other = await send(new URL(`https://api.test:${tls}/v1?a=b`), proxies);
    expect(await other.text()).toBe(`POST /v1?a=b to api.test:${tls}: hello`);
    expect(other.headers.get("x-proxy")).toBe("undefined");
    expect(proxy.asked).toEqual([
      { line: `POST http://api.test:${plain}/v1?a=b`, authorization: AUTHORIZATION },
      { line: `CONNECT api.test:${tls}`, authorization: AUTHORIZATION },
    ]);
  });

  it("verifies the server behind a tunnel", async () => {
    const tls = await origin("tls");
    await using proxy = await companyProxy({ tunnelPorts: [tls] });
    const proxies = readProxies({ HTTPS_PROXY: proxy.url });
    await expect(proxiedFetch(`https://api.test:${tls}/`, {}, proxies)).rejects.toThrow(
      /self.signed|altnames/,
    );
  });

  it.each(["plain", "tls"] as const)("goes through SOCKS as well, to %s", async (kind) => {
    trustAnyone();
    const port = await origin(kind);
    await using place = await egressPlace({ hosts: [`api.test:${port}`, "127.0.0.1"] });
    const proxies = readProxies({ ALL_PROXY: `socks5h://user:p%40ss@127.0.0.1:${place.proxyPort}` });
    const scheme = kind === "tls" ? "https" : "http";
    const answer = await proxiedFetch(`${scheme}://api.test:${port}/x`, {}, proxies);
    expect(await answer.text()).toBe(`GET /x to api.test:${port}: `);
    await eventually(() => expect(place.attempts).toMatchObject([{ way: "socks", host: "api.test" }]));
    const refused = proxiedFetch(`${scheme}://else.test:${port}/x`, {}, proxies);
    await expect(refused).rejects.toThrow(
      /the proxy of ALL_PROXY, socks5:\/\/127.0.0.1:\d+, cannot be used: EACCES/,
    );
  });

  it("that fails says by which proxy, without its password", async () => {
    await using proxy = await companyProxy({ tunnelPorts: [] });
    const failing = async (text: string) => {
      const sent = proxiedFetch("https://api.test/", {}, readProxies({ HTTPS_PROXY: text }));
      return await sent.then(String, (error: Error) => error.message);
    };
    expect(await failing(proxy.url)).toMatch(
      /^the proxy of HTTPS_PROXY, http:\/\/127.0.0.1:\d+, answered 403$/,
    );
    expect(await failing(proxy.urlWithoutPassword)).toMatch(/answered 407$/);
    expect(await failing("http://user:secret@127.0.0.1:1")).toBe(
      "the proxy of HTTPS_PROXY, http://127.0.0.1:1, cannot be used: ECONNREFUSED",
    );
    expect(await failing("ftp://user:secret@p")).toBe(
      "HTTPS_PROXY of the environment is not the URL of a proxy that brig can use",
    );
  });

  it("ends with its signal, or with a silence, while the proxy does not answer", async () => {
    await using silent = await tcpServer(() => undefined);
    for (const scheme of ["http", "socks5"]) {
      const proxies = readProxies({ HTTPS_PROXY: `${scheme}://127.0.0.1:${silent.port}` });
      const [ended, quiet] = [new AbortController(), new AbortController()];
      const one = proxiedFetch("https://api.test/", { signal: ended.signal }, proxies);
      ended.abort(new Error("enough"));
      await expect(one).rejects.toThrow("enough");
      const post = { headers: {}, body: "", signal: never, silence: quiet.signal, proxies };
      const other = postJson(new URL("https://api.test/"), post);
      await eventually(() => expect(silent.sockets.size).toBeGreaterThan(0));
      quiet.abort(new Error("no answer"));
      await expect(other).rejects.toThrow("no answer");
    }
  });

  it("ends while the answer arrives", async () => {
    await using server = await tcpServer((socket) => {
      socket.on("error", () => undefined);
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    });
    const proxies = readProxies({ HTTP_PROXY: `http://127.0.0.1:${server.port}` });
    const ended = new AbortController();
    const answer = await proxiedFetch("http://api.test/", { signal: ended.signal }, proxies);
    const text = answer.text();
    ended.abort(new Error("enough"));
    await expect(text).rejects.toThrow();
  });
});
