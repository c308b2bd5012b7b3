import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { packTar } from "../../src/sandbox/docker/calls/tar.js";

/** A registry on loopback with one image of one layer. */
export interface Registry extends AsyncDisposable {
  /** The name by which an engine of this machine pulls the image. */
  image: string;
  layerBytes: number;
  /** Lets the second half of the layer go. */
  release(): void;
}

/** The layer's second half is held back until it is released. */
export async function slowRegistry(architecture: string): Promise<Registry> {
  const content = randomBytes(8 * 1024 ** 2);
  const tar = await buffer(packTar([{ path: "random", mode: 0o644, content }]));
  const layer = gzipSync(tar);
  const config = Buffer.from(
    JSON.stringify({
      ...{ architecture, os: "linux", config: {} },
      rootfs: { type: "layers", diff_ids: [digestOf(tar)] },
    }),
  );
  const types = "application/vnd.docker";
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: `${types}.distribution.manifest.v2+json`,
      config: described(config, `${types}.container.image.v1+json`),
      layers: [described(layer, `${types}.image.rootfs.diff.tar.gzip`)],
    }),
  );
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const blobs = new Map([config, layer].map((blob) => [digestOf(blob), blob]));
  const server = createServer((request, response) => {
    const { url = "", method } = request;
    const blob = blobs.get(url.replace(/^.*\/blobs\//, ""));
    if (url === "/v2/") return void response.end("{}");
    if (url.includes("/manifests/"))
      return send(response, manifest, {
        type: `${types}.distribution.manifest.v2+json`,
        isHead: method === "HEAD",
      });
    if (blob === undefined) return void response.writeHead(404).end();
    if (blob !== layer)
      return send(response, blob, { type: "application/octet-stream", isHead: method === "HEAD" });
    response.writeHead(200, { "content-length": layer.length });
    response.write(layer.subarray(0, layer.length / 2));
    void released.then(() => response.end(layer.subarray(layer.length / 2)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    image: `127.0.0.1:${(server.address() as AddressInfo).port}/slow:latest`,
    layerBytes: layer.length,
    release,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function send(
  response: ServerResponse,
  body: Buffer,
  { type, isHead }: { type: string; isHead: boolean },
): void {
  response.writeHead(200, {
    "content-type": type,
    "content-length": body.length,
    "docker-content-digest": digestOf(body),
  });
  response.end(isHead ? undefined : body);
}

function described(blob: Buffer, mediaType: string) {
  return { mediaType, size: blob.length, digest: digestOf(blob) };
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}
