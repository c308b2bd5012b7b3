import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import type { AskedHost, HostAnswer } from "../../../../src/sandbox/egress/attempt.js";
import { Inspection } from "../../../../src/sandbox/egress/inspection.js";
import { dialTo, egressPlace, eventually } from "../../../support/egress-place.js";

async function httpServer(): Promise<number> {
  const server = createServer((_, response) => response.end("answer"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

async function request(proxyPort: number, url: string): Promise<string> {
  const { socket, received, ended } = await dialTo(proxyPort);
  socket.write(`GET ${url} HTTP/1.1\r\nHost: ${new URL(url).host}\r\nConnection: close\r\n\r\n`);
  await ended;
  return received();
}

describe("an address, where requests to some hosts need a rule", () => {
  const rules = [{ host: "api.example.com:80", methods: ["GET"] }];
  const inspection = async () => await Inspection.create({ rules, secrets: [], authorities: [] });

  it.each([[[]], [["@public"]]])(
    "is refused without a question, since a host may be behind it: %j",
    async (hosts) => {
      await using place = await egressPlace({ hosts, inspection: await inspection() });
      let count = 0;
      place.egress.askWith(async () => {
        count++;
        return { kind: "session" };
      });
      expect(await request(place.proxyPort, "http://8.8.8.8/")).toContain("use the host's name");
      expect(count).toBe(0);
    },
  );

  it("is asked about without such rules", async () => {
    await using place = await egressPlace({ hosts: [] });
    place.egress.askWith(async () => ({ kind: "declined", reason: "was asked" }));
    expect(await request(place.proxyPort, "http://8.8.8.8/")).toContain("was asked");
  });
});

describe("a host that no rule allows", () => {
  it("is reached once the user allows it, for this connection only", async () => {
    await using place = await egressPlace({ hosts: [] });
    const port = await httpServer();
    const asked: AskedHost[] = [];
    place.egress.askWith(async (one) => {
      asked.push(one);
      return asked.length === 1 ? { kind: "once" } : { kind: "declined", reason: "not twice" };
    });
    const url = `http://host.internal:${port}/`;
    expect(await request(place.proxyPort, url)).toContain("answer");
    expect(await request(place.proxyPort, url)).toContain(
      `the user declined the connection to host.internal:${port}: not twice`,
    );
    expect(asked[0]).toMatchObject({
      ...{ host: `host.internal:${port}`, isOwnMachine: true, owner: { program: "curl" } },
    });
    expect(place.egress.hosts).toEqual([]);
    await eventually(() => expect(place.attempts).toHaveLength(2));
    expect(place.attempts).toMatchObject([
      { outcome: { kind: "allowed" }, rule: "allowed once by the user" },
      { outcome: { kind: "denied", denial: { kind: "declined", reason: "not twice" } } },
    ]);
  });

  it("is on the list for the rest of the session, until the list is replaced", async () => {
    await using place = await egressPlace({ hosts: ["a.example"] });
    const port = await httpServer();
    let count = 0;
    place.egress.askWith(async () => {
      count++;
      return { kind: "session" };
    });
    const url = `http://host.internal:${port}/`;
    for (let i = 0; i < 3; i++) expect(await request(place.proxyPort, url)).toContain("answer");
    expect(count).toBe(1);
    expect(place.egress.hosts).toEqual(["a.example", `host.internal:${port}`]);
    place.egress.setHosts([]);
    place.egress.askWith(async () => ({ kind: "not-asked" }));
    expect(await request(place.proxyPort, url)).toContain("no rule");
  });

  it.each(["http://10.0.0.1/", "http://169.254.169.254/", "http://127.0.0.1:81/"])(
    "is not asked about as %s, which is not public",
    async (url) => {
      await using place = await egressPlace({ hosts: [] });
      let count = 0;
      place.egress.askWith(async () => {
        count++;
        return { kind: "session" };
      });
      expect(await request(place.proxyPort, url)).toContain("403");
      expect(count).toBe(0);
    },
  );

  it("stays out of reach as a name for an address that is not public, whatever the user says", async () => {
    await using place = await egressPlace({ hosts: [], resolve: async () => ["10.0.0.1"] });
    place.egress.askWith(async () => ({ kind: "session" }));
    expect(await request(place.proxyPort, "http://inside.example/")).toContain("a private address");
  });

  it("is not looked up before the user allows it, and not reached after the list was closed", async () => {
    const place = await egressPlace({ hosts: [] });
    let answer: (one: HostAnswer) => void = () => undefined;
    place.egress.askWith(
      () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    );
    const waiting = request(place.proxyPort, "http://waiting.example/");
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(place.lookups).toEqual([]);
    await place.egress.close();
    answer({ kind: "once" });
    await waiting;
    expect(place.lookups).toEqual([]);
  });
});
