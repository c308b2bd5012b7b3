import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseEndpoint } from "../../../../src/sandbox/docker/endpoint.js";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "brig-endpoint-"));
});
afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

describe("parseEndpoint", () => {
  it("takes the path of a Unix socket", async () => {
    const endpoint = await parseEndpoint("unix:///run/user/1000/docker.sock");
    expect(endpoint).toEqual({
      kind: "unix",
      address: "unix:///run/user/1000/docker.sock",
      socketPath: "/run/user/1000/docker.sock",
    });
  });

  it("knows the usual ports", async () => {
    expect(await parseEndpoint("tcp://engine.example")).toMatchObject({ port: 2375, tls: null });
    expect(await parseEndpoint("tcp://engine.example:99")).toMatchObject({
      host: "engine.example",
      port: 99,
    });
    expect(await parseEndpoint("tcp://[::1]:2375")).toMatchObject({ host: "::1" });
  });

  it("speaks TLS with the three files of the given folder", async () => {
    const tlsDir = join(directory, "certs");
    await mkdir(tlsDir);
    for (const name of ["ca", "cert", "key"]) await writeFile(join(tlsDir, `${name}.pem`), name);
    const endpoint = await parseEndpoint("tcp://engine.example", { tlsDir });
    expect(endpoint).toMatchObject({
      port: 2376,
      tls: { ca: Buffer.from("ca"), cert: Buffer.from("cert"), key: Buffer.from("key") },
    });
    expect(await parseEndpoint("tcp://engine.example:9", { tlsDir })).toMatchObject({ port: 9 });
    expect(await parseEndpoint("https://engine.example:9", { tlsDir })).toMatchObject({ port: 9 });
    expect(await parseEndpoint("http://engine.example")).toMatchObject({ port: 2375, tls: null });
  });

  it("never falls back to plain text when a certificate is missing", async () => {
    const refused = parseEndpoint("tcp://engine.example", { tlsDir: directory });
    await expect(refused).rejects.toMatchObject({
      code: "config.invalid",
      hint: expect.stringMatching(/DOCKER_CERT_PATH/),
    });
    await expect(parseEndpoint("https://engine.example")).rejects.toMatchObject({ code: "config.invalid" });
  });

  it.each([
    ["ssh://far.example", { host: "far.example", user: null, port: null, socketPath: null }],
    ["ssh://me@far-1.example:2222/", { host: "far-1.example", user: "me", port: 2222, socketPath: null }],
    ["ssh://alias/run/user/1000/docker.sock", { host: "alias", socketPath: "/run/user/1000/docker.sock" }],
    ["ssh://corp.user@[fe80::1%eth0]:22", { host: "fe80::1%eth0", user: "corp.user", port: 22 }],
  ])("takes the parts of %s", async (address, parts) => {
    expect(await parseEndpoint(address)).toMatchObject({ kind: "ssh", address, ...parts });
  });

  it.each([
    "ssh://",
    "ssh://me:secret@far.example",
    "ssh://-oProxyCommand=touch x/",
    "ssh://-Fx@far.example",
    "ssh://far.example:99999",
    "ssh://far.example/run/docker.sock;reboot",
    "ssh://far.example/$(reboot)",
    "ssh://me@far.example\nProxyCommand x",
  ])("refuses %j, which a shell or ssh could take for something else", async (address) => {
    await expect(parseEndpoint(address)).rejects.toMatchObject({
      code: "config.invalid",
      hint: expect.stringContaining("write ssh://user@host"),
    });
  });

  it.each([
    "",
    "docker.sock",
    "/var/run/docker.sock",
    "unix://relative",
    "tcp://",
    "ftp://x",
    "npipe:////./pipe/x",
  ])("refuses %j", async (address) => {
    await expect(parseEndpoint(address)).rejects.toMatchObject({
      code: "config.invalid",
      hint: expect.stringMatching(/unix:\/\//),
    });
  });
});
