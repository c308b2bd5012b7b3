import { describe, expect, it } from "vitest";
import {
  credentialsIn,
  sentHeadersFor,
  withSentHeaders,
} from "../../../../../src/sandbox/egress/secrets/sent-headers.js";

const sent = ["*.example.com", "*.api.example.com", "api.example.com", "v1.api.example.com:8443"].map(
  (host) => ({
    host,
    headers: { "X-Host": host },
  }),
);
const at = (name: string, port = 443) =>
  sentHeadersFor({ target: { kind: "name", name }, port }, sent)?.headers["X-Host"] ?? null;

describe("the headers of a host", () => {
  it("are those of its own name, else those of the longest wildcard", () => {
    expect(at("api.example.com")).toBe("api.example.com");
    expect(at("www.example.com")).toBe("*.example.com");
    expect(at("v1.api.example.com")).toBe("*.api.example.com");
    expect(at("v1.api.example.com", 8443)).toBe("v1.api.example.com:8443");
    expect(at("example.com")).toBeNull();
    expect(at("example.com.evil.example")).toBeNull();
  });

  it("take the place of all that have the name, in any spelling", () => {
    const headers = ["Host", "a", "x-one", "1", "X-ONE", "2", "X-Two", "3"];
    const result = withSentHeaders(headers, { host: "a", headers: { "X-One": "4" } });
    expect(result).toEqual(["Host", "a", "X-Two", "3", "X-One", "4"]);
  });

  it("are hidden where they are credentials by their names, without what says how", () => {
    const headers = {
      Authorization: "Bearer abcdefghijkl",
      "X-Service-Token": "mnopqrst",
      Cookie: "a=1; session=uvwxyz012345",
      Accept: "application/json",
      "X-Api-Key": "short",
    };
    expect(credentialsIn([{ host: "a", headers }])).toEqual([
      "abcdefghijkl",
      "mnopqrst",
      "session=uvwxyz012345",
    ]);
  });
});
