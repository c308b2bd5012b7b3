import { describe, expect, it } from "vitest";
import { readRedisAddress, shownAddress } from "../../../../../src/batch/queue/redis.js";

describe("the address of a Redis server", () => {
  it.each([
    ["redis://host", { host: "host", port: 6379, database: 0, usesTls: false }, "redis://host:6379"],
    ["rediss://host:1/7", { host: "host", port: 1, database: 7, usesTls: true }, "rediss://host:1/7"],
    ["redis://[::1]:2/", { host: "::1", port: 2 }, "redis://[::1]:2"],
    ["redis://me:p%40ss%3A@host", { username: "me", password: "p@ss:" }, "redis://host:6379"],
    ["redis://:only@host", { username: undefined, password: "only" }, "redis://host:6379"],
  ])("%s is read, and shown without user and password", (text, expected, shown) => {
    const address = readRedisAddress(text);
    expect(address).toMatchObject(expected);
    expect(shownAddress(address)).toBe(shown);
  });

  it("has the password of the URL, else the one that was given", () => {
    expect(readRedisAddress("redis://host", { password: "given" }).password).toBe("given");
    expect(readRedisAddress("redis://:own@host", { password: "given" }).password).toBe("own");
  });

  it.each([
    "",
    "host",
    "http://:geheim@host",
    "redis://",
    "redis://:geheim@host/x",
    "redis://:geheim@host/?a=b",
    "redis://:geheim%@host",
  ])("%j is refused, and not quoted", (text) => {
    let message = "";
    try {
      readRedisAddress(text);
    } catch (error) {
      message = String(error);
    }
    expect(message).toContain("the address of the queue cannot be used");
    expect(message).not.toContain("geheim");
  });

  it("with certificates needs TLS", () => {
    expect(() => readRedisAddress("redis://host", { ca: "PEM" })).toThrow("rediss://");
    expect(readRedisAddress("rediss://host", { ca: "PEM" }).ca).toBe("PEM");
  });
});
