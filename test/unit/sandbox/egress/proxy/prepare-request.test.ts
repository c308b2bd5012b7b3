import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, request } from "node:http";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { Inspection, type InspectionOptions } from "../../../../../src/sandbox/egress/inspection.js";
import { readUpstream } from "../../../../../src/sandbox/egress/read-upstream.js";
import { companyProxy } from "../../../../support/company-proxy.js";
import { egressPlace, eventually } from "../../../../support/egress-place.js";
import { HOST, inspectedPlace, PLACEHOLDER, SECRET, tunnel } from "../../../../support/inspected-place.js";

async function openCompanyProxy(tunnelPorts: readonly number[]) {
  const proxy = await companyProxy({ tunnelPorts });
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  return proxy;
}

/** Keeps what a connection says, and asks in it. */
function speaker(tls: TLSSocket, host: string) {
  let text = "";
  tls.on("data", (chunk) => {
    text += chunk;
  });
  return {
    received: () => text,
    get: (path: string) =>
      tls.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${PLACEHOLDER}\r\n\r\n`),
  };
}

/** Asks in plain HTTP, as a program that takes brig for its proxy. */
async function askPlainly(proxyPort: number, url: string, headers: Record<string, string> = {}) {
  const outgoing = request({ port: proxyPort, path: url, headers: { host: new URL(url).host, ...headers } });
  outgoing.end();
  const [incoming] = await once(outgoing, "response");
  return { status: incoming.statusCode as number, text: (await incoming.toArray()).join("") as string };
}

async function plainServer() {
  const received: { url: string | undefined; headers: IncomingHttpHeaders }[] = [];
  const server = createServer(({ url, headers }, response) => {
    received.push({ url, headers });
    response.end(`told ${headers.authorization}`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { received, port: (server.address() as AddressInfo).port };
}

async function inspection({
  rules = [],
  secrets = [],
}: Partial<Pick<InspectionOptions, "rules">> & {
  secrets?: { hosts: string[]; plainHttp: boolean }[];
}) {
  return await Inspection.create({
    ...{ rules, authorities: [] },
    secrets: secrets.map((secret) => ({
      ...{ name: "API_KEY", value: SECRET, placeholder: PLACEHOLDER, query: ["key"] },
      ...{ headers: ["authorization"], ...secret },
    })),
  });
}

describe("a request in TLS that ends here", () => {
  it("reaches its host in tunnels of an upstream proxy, which sees neither requests nor secrets", async () => {
    const seen: (string | undefined)[] = [];
    let proxy: Awaited<ReturnType<typeof openCompanyProxy>> | undefined;
    await using here = await inspectedPlace(
      ({ url, headers }, response) => {
        seen.push(`${url} ${headers.authorization} ${headers["proxy-authorization"]}`);
        response.end(`answer to ${url}`);
      },
      {
        ...{ secret: {}, rules: [{ methods: ["GET"] }] },
        upstream: async (port) => {
          proxy = await openCompanyProxy([port]);
          return readUpstream(proxy.url, {});
        },
      },
    );
    const host = `${HOST}:${here.server.port}`;
    const tls = await tunnel(here.egress.proxyPort, {
      ...{ host: HOST, port: here.server.port, ca: here.inspection.certificate },
    });
    const { received, get } = speaker(tls, host);
    for (const path of ["/1", "/2", "/3"]) {
      get(path);
      await eventually(() => expect(received()).toContain(`answer to ${path}`));
    }
    expect(seen).toEqual(["/1", "/2", "/3"].map((path) => `${path} Bearer ${SECRET} undefined`));
    expect(proxy?.asked.map(({ line }) => line)).toEqual([`CONNECT ${host}`]);
    expect(here.egress.lookups).toEqual([]);
    tls.destroy();
  });

  it("stays open in such a tunnel when the rules change and still allow it, and is cut when they do not", async () => {
    let answer: () => void = () => undefined;
    await using here = await inspectedPlace(
      ({ url }, response) => {
        response.write(`begun ${url} `);
        answer = () => void response.write(`more of ${url} `);
      },
      {
        rules: [{}],
        upstream: async (port) => readUpstream((await openCompanyProxy([port])).url, {}),
      },
    );
    const host = `${HOST}:${here.server.port}`;
    // The proxy's own address is not on the list.
    here.egress.egress.setHosts([host]);
    const tls = await tunnel(here.egress.proxyPort, {
      ...{ host: HOST, port: here.server.port, ca: here.inspection.certificate },
    });
    tls.on("error", () => undefined);
    const { received, get } = speaker(tls, host);
    get("/1");
    await eventually(() => expect(received()).toContain("begun /1"));
    here.egress.egress.setHosts([host, "b.test"]);
    answer();
    await eventually(() => expect(received()).toContain("more of /1"));
    const closed = once(tls, "close");
    here.egress.egress.setHosts(["b.test"]);
    await closed;
  });

  it("is decided by the host's rules for requests, also after the user has allowed the host", async () => {
    for (const kind of ["once", "session"] as const) {
      const seen: (string | undefined)[] = [];
      await using here = await inspectedPlace(
        ({ url }, response) => {
          seen.push(url);
          response.end(`answer to ${url}`);
        },
        { rules: [{ path: "/open/*" }], isListed: false },
      );
      const host = `${HOST}:${here.server.port}`;
      const asked: string[] = [];
      here.egress.egress.askWith(async (one) => {
        asked.push(one.host);
        return { kind };
      });
      const tls = await tunnel(here.egress.proxyPort, {
        ...{ host: HOST, port: here.server.port, ca: here.inspection.certificate },
      });
      const { received, get } = speaker(tls, host);
      for (const path of ["/open/1", "/open/2"]) {
        get(path);
        await eventually(() => expect(received(), kind).toContain(`answer to ${path}`));
      }
      get("/closed");
      await eventually(() => expect(received(), kind).toContain(`no rule for requests to ${host} allows`));
      expect(seen).toEqual(["/open/1", "/open/2"]);
      expect(asked).toEqual([host]);
      tls.destroy();
    }
  });
});

describe("a request in plain HTTP", () => {
  it("is decided by the host's rules for requests, also where the user allows the host", async () => {
    const server = await plainServer();
    const host = `host.internal:${server.port}`;
    const rules = [{ host, methods: ["GET"], path: "/open" }];
    await using place = await egressPlace({ hosts: [], inspection: await inspection({ rules }) });
    const unasked = await askPlainly(place.proxyPort, `http://${host}/closed`);
    expect(unasked.text).toContain(`no rule of this sandbox's network allow-list allows ${host}`);
    const asked: string[] = [];
    place.egress.askWith(async (one) => {
      asked.push(one.host);
      return { kind: "session" };
    });
    const refused = { status: 403, text: expect.stringContaining("no rule for requests to") };
    expect(await askPlainly(place.proxyPort, `http://${host}/closed`)).toEqual(refused);
    // Nobody is asked in vain.
    expect(asked).toEqual([]);
    expect(await askPlainly(place.proxyPort, `http://${host}/open`)).toMatchObject({ status: 200 });
    expect(await askPlainly(place.proxyPort, `http://${host}/closed`)).toEqual(refused);
    expect(asked).toEqual([host]);
    expect(server.received.map(({ url }) => url)).toEqual(["/open"]);
  });

  it.each(["directly", "through an upstream proxy"])(
    "has a secret only if that may be sent without TLS, %s",
    async (way) => {
      const server = await plainServer();
      const proxy = await openCompanyProxy([server.port]);
      const name = way === "directly" ? "host.internal" : "a.example";
      const host = `${name}:${server.port}`;
      const headers = { authorization: `Bearer ${PLACEHOLDER}` };
      for (const plainHttp of [false, true]) {
        await using place = await egressPlace({
          ...{ hosts: [host], upstream: way === "directly" ? null : readUpstream(proxy.url, {}) },
          inspection: await inspection({ secrets: [{ hosts: [host], plainHttp }] }),
        });
        const answer = await askPlainly(place.proxyPort, `http://${host}/x?key=${PLACEHOLDER}`, headers);
        if (plainHttp)
          expect(answer).toEqual({ status: 200, text: `told Bearer ${"*".repeat(SECRET.length)}` });
        else expect(answer).toMatchObject({ status: 403, text: expect.stringContaining("in plain HTTP") });
      }
      const sent = [{ url: `/x?key=${encodeURIComponent(SECRET)}`, authorization: `Bearer ${SECRET}` }];
      expect(server.received.map(({ url, headers: { authorization } }) => ({ url, authorization }))).toEqual(
        sent,
      );
      expect(proxy.asked).toHaveLength(way === "directly" ? 0 : 1);
    },
  );
});
