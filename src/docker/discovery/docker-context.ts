import { createHash } from "node:crypto";
import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import type { Environment } from "../../config/env.js";
import { BrigError } from "../../errors.js";
import { parseEndpoint } from "../endpoint.js";
import type { Candidate } from "./candidate.js";

const clientConfig = z.object({ currentContext: z.string().nullish() });
const contextMeta = z.object({ Endpoints: z.object({ docker: z.object({ Host: z.string() }) }) });

/** The Docker client's current context (`docker context use`), when it is not the default one. */
export async function dockerContext(env: Environment): Promise<Candidate[]> {
  const configDir = env.variables.DOCKER_CONFIG ?? join(env.home, ".docker");
  const name = env.variables.DOCKER_CONTEXT ?? (await currentContext(configDir));
  if (name === undefined || name === "default") return [];
  const id = createHash("sha256").update(name).digest("hex");
  const address = await contextAddress(join(configDir, "contexts", "meta", id, "meta.json"), name);
  const tlsDir = await existing(join(configDir, "contexts", "tls", id, "docker"));
  const endpoint = await parseEndpoint(address, { tlsDir });
  return [{ endpoint, origin: `the Docker context ${name}`, isChosen: true }];
}

async function currentContext(configDir: string): Promise<string | undefined> {
  const source = await readFile(join(configDir, "config.json"), "utf8").catch(() => null);
  if (source === null) return undefined;
  return parseJson(clientConfig, source)?.currentContext ?? undefined;
}

async function contextAddress(file: string, name: string): Promise<string> {
  const source = await readFile(file, "utf8").catch(() => null);
  const meta = source === null ? undefined : parseJson(contextMeta, source);
  if (meta !== undefined) return meta.Endpoints.docker.Host;
  throw new BrigError(`the Docker context ${JSON.stringify(name)} is selected but cannot be read`, {
    code: "config.invalid",
    hint: "try: docker context ls, or: docker context use default",
  });
}

function parseJson<T>(schema: z.ZodType<T>, source: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(source)).data;
  } catch {
    return undefined;
  }
}

async function existing(path: string): Promise<string | undefined> {
  return await access(path).then(
    () => path,
    () => undefined,
  );
}
