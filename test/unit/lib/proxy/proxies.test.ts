import { describe, expect, it } from "vitest";
import {
  describeProxy,
  parseProxyAddress,
  proxyFor,
  readProxies,
} from "../../../../src/lib/proxy/proxies.js";

const hostOfProxy = (variables: Record<string, string>, url: string) =>
  proxyFor(readProxies(variables), new URL(url))?.address?.host ?? null;

describe("the proxy of the environment", () => {
  it.each([
    [{ HTTPS_PROXY: "http://a:1" }, "https://x.test/", "a"],
    [{ HTTPS_PROXY: "http://a:1" }, "http://x.test/", null],
    [{ HTTP_PROXY: "http://a:1" }, "http://x.test/", "a"],
    [{ HTTP_PROXY: "http://a:1" }, "https://x.test/", null],
    [{ HTTPS_PROXY: "http://a:1", https_proxy: "http://b:1" }, "https://x.test/", "b"],
    [{ HTTPS_PROXY: "http://a:1", https_proxy: "" }, "https://x.test/", "a"],
    [{ all_proxy: "http://a:1" }, "https://x.test/", "a"],
    [{ ALL_PROXY: "http://a:1" }, "http://x.test/", "a"],
    [{ ALL_PROXY: "http://a:1", http_proxy: "http://b:1" }, "http://x.test/", "b"],
    [{}, "https://x.test/", null],
  ] as [Record<string, string>, string, string | null][])(
    "of %j for %s is %s",
    (variables, url, expected) => {
      expect(hostOfProxy(variables, url)).toBe(expected);
    },
  );

  it("is not for what NO_PROXY names, with either spelling of it", () => {
    const list = "corp.test,.lab.test *.dept.test one.test:8443 10.0.0.0/8 [fd00::1] 192.0.2.7";
    const direct = [
      ...["corp.test", "a.corp.test", "b.lab.test", "c.dept.test", "one.test:8443", "10.1.2.3", "[fd00::1]"],
      "192.0.2.7:8080",
    ];
    for (const name of ["NO_PROXY", "no_proxy"]) {
      const through = (host: string) =>
        hostOfProxy({ ALL_PROXY: "http://a:1", [name]: list }, `https://${host}/`);
      for (const host of direct) expect([host, through(host)]).toEqual([host, null]);
      for (const host of ["xcorp.test", "one.test", "11.0.0.1", "[fd00::2]", "test"])
        expect([host, through(host)]).toEqual([host, "a"]);
    }
    expect(hostOfProxy({ ALL_PROXY: "http://a:1", NO_PROXY: "*" }, "https://x.test/")).toBeNull();
  });

  it.each(["localhost:11434", "a.localhost", "127.0.0.1:1", "127.9.9.9", "[::1]:1"])(
    "is not for %s, which is this machine",
    (host) => {
      expect(hostOfProxy({ ALL_PROXY: "http://a:1" }, `http://${host}/`)).toBeNull();
    },
  );

  it("is described without its user and password, and what is no proxy is none", () => {
    const describe = (text: string) => {
      const address = parseProxyAddress(text);
      return address === null ? null : describeProxy(address);
    };
    expect(describe("http://user:secret@p.test")).toBe("http://p.test:80");
    expect(describe("https://p.test:1")).toBe("https://p.test:1");
    expect(describe("socks5h://u:p@[fd00::1]")).toBe("socks5://[fd00::1]:1080");
    expect(describe("p.test:3128")).toBe("http://p.test:3128");
    for (const text of ["ftp://p.test", "http://", "socks4://p.test", "a b"])
      expect(describe(text)).toBeNull();
  });
});
