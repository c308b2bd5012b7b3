import { resolve } from "node:path";
import { BrigError } from "../../../errors.js";
import { DirectoryStore } from "./directory-store.js";
import type { ObjectStore } from "./object-store.js";
import { S3Store } from "./s3-store.js";

export interface OpenStoreOptions {
  /** Relative directories begin here. */
  cwd: string;
  /** Variables for a bucket: the usual `AWS_…` ones. */
  variables: Readonly<Record<string, string | undefined>>;
}

const DEFAULT_REGION = "us-east-1";

/** A directory, or `s3://BUCKET[/PREFIX]`. Errors: `usage.invalid`, `store.failed`. */
export async function openStore(address: string, { cwd, variables }: OpenStoreOptions): Promise<ObjectStore> {
  if (!/^[a-z0-9+]+:\/\//i.test(address)) return await DirectoryStore.open(resolve(cwd, address));
  const [, bucket, prefix = ""] =
    /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([^?#]*))?$/.exec(address) ?? [];
  if (bucket === undefined)
    throw invalid(`${JSON.stringify(address)} is neither a directory nor s3://BUCKET/PREFIX`);
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = variables;
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw invalid("there are no keys for the bucket", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
  const region = variables.AWS_REGION ?? variables.AWS_DEFAULT_REGION ?? DEFAULT_REGION;
  const bucketUrl = bucketUrlOf(bucket, { region, variables });
  const sessionToken = variables.AWS_SESSION_TOKEN;
  const inside = prefix.replace(/\/+$/, "");
  return new S3Store(
    { bucketUrl, region, accessKeyId, secretAccessKey, sessionToken },
    { prefix: inside === "" ? "" : `${inside}/` },
  );
}

/** Servers other than Amazon's have their buckets in the path. */
function bucketUrlOf(
  bucket: string,
  { region, variables }: { region: string } & Pick<OpenStoreOptions, "variables">,
): string {
  const endpoint = variables.AWS_ENDPOINT_URL_S3 ?? variables.AWS_ENDPOINT_URL;
  if (endpoint === undefined) return `https://${bucket}.s3.${region}.amazonaws.com`;
  const url = URL.canParse(endpoint) ? new URL(endpoint) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== "" || url.username !== "")
    throw invalid("AWS_ENDPOINT_URL is not the address of a server, such as https://storage.example.org");
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}/${bucket}`;
}

function invalid(problem: string, hint?: string): BrigError {
  return new BrigError(`the store of the results cannot be used: ${problem}`, {
    code: "usage.invalid",
    hint: hint ?? "give --results a directory that all machines share, or a bucket",
  });
}
