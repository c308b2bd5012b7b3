import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { ProjectHosts } from "../../../../../src/agent/config/project-hosts.js";
import { temporaryDirectory } from "../../../../support/sandbox.js";

let folder = "";
const home = () => join(folder, "home");
const file = () => join(home(), "allowed-hosts.json");
const hostsOf = (name: string) => new ProjectHosts({ brigHome: home(), directory: join(folder, name) });

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  folder = directory.path;
  for (const name of ["one", "two"]) mkdirSync(join(folder, name));
});

describe("hosts that are always allowed", () => {
  it("belong to one directory, by whatever path it is reached", async () => {
    expect(await hostsOf("one").read()).toEqual([]);
    await hostsOf("one").add("api.example.com:443");
    await hostsOf("one").add("203.0.113.7:8443");
    await hostsOf("two").add("b.example:80");
    symlinkSync(join(folder, "one"), join(folder, "link"));
    expect(await hostsOf("link").read()).toEqual(["api.example.com:443", "203.0.113.7:8443"]);
    expect(await hostsOf("two").read()).toEqual(["b.example:80"]);
  });

  it("are removed one by one, and with the last the directory", async () => {
    await hostsOf("one").add("a.example:443");
    await hostsOf("one").add("a.example:443");
    await hostsOf("one").remove("b.example:443");
    expect(await hostsOf("one").read()).toEqual(["a.example:443"]);
    await hostsOf("one").remove("a.example:443");
    expect(JSON.parse(readFileSync(file(), "utf8"))).toEqual({ version: 1, projects: {} });
  });

  it("are all kept when many sessions write at once, and no lock is left", async () => {
    const names = Array.from({ length: 12 }, (_, at) => `h${at}.example:443`);
    await Promise.all(names.map((name, at) => hostsOf(at % 2 === 0 ? "one" : "two").add(name)));
    const all = [...(await hostsOf("one").read()), ...(await hostsOf("two").read())];
    expect(all.toSorted()).toEqual(names.toSorted());
    expect(readdirSync(home())).toEqual(["allowed-hosts.json"]);
  });

  const entry = (host: unknown) =>
    JSON.stringify({ version: 1, projects: { [join(folder, "one")]: [host] } });
  it.each([
    ["half of it", () => entry("a.example:443").slice(0, -3)],
    ["nothing", () => ""],
    ["another version", () => JSON.stringify({ version: 2, projects: {} })],
    ["an unknown key", () => JSON.stringify({ version: 1, projects: {}, more: 1 })],
    ["every public host", () => entry("@public")],
    ["a preset", () => entry("@npm")],
    ["a suffix", () => entry("*.example:443")],
    ["a range", () => entry("0.0.0.0/0:443")],
    ["a name without a port", () => entry("a.example")],
    ["an odd spelling", () => entry("A.example:443")],
    ["a number", () => entry(1)],
    [
      "too many hosts",
      () => JSON.stringify({ version: 1, projects: { "/x": Array(201).fill("a.example:443") } }),
    ],
  ])("are an error where the file has %s, and are not overwritten", async (_, text) => {
    mkdirSync(home());
    writeFileSync(file(), text());
    const error = { code: "config.invalid", message: expect.stringContaining(file()) };
    await expect(hostsOf("one").read()).rejects.toMatchObject(error);
    await expect(hostsOf("one").add("b.example:443")).rejects.toMatchObject(error);
    expect(readFileSync(file(), "utf8")).toBe(text());
  });

  it("are an error where something else has the file's name", async () => {
    mkdirSync(file(), { recursive: true });
    await expect(hostsOf("one").read()).rejects.toMatchObject({ code: "config.invalid" });
    expect(statSync(file()).isDirectory()).toBe(true);
  });

  it.each(["@public", "*.example:443", "a.example", "10.0.0.0/8:443"])("are never %s", async (host) => {
    await expect(hostsOf("one").add(host)).rejects.toMatchObject({ code: "config.invalid" });
    expect(await hostsOf("one").read()).toEqual([]);
  });
});
