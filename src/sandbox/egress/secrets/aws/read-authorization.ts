/** An `Authorization` header of Signature Version 4. The signature is that of a placeholder, and worth nothing. */
export interface AwsAuthorization {
  accessKeyId: string;
  region: string;
  service: string;
  /** Names in lower case. */
  signedHeaders: readonly string[];
}

export type AwsAuthorizationReading =
  | { kind: "signed"; authorization: AwsAuthorization }
  /** Signed with an elliptic curve (Signature Version 4A), which takes another library. */
  | { kind: "asymmetric" }
  | { kind: "unreadable" };

const HEADER =
  /^AWS4-HMAC-SHA256 +Credential=([A-Za-z0-9]{1,128})\/\d{8}\/([a-z0-9-]{1,63})\/([a-z0-9-]{1,63})\/aws4_request *, *SignedHeaders=([a-z0-9!#$%&'*+.^_`|~;-]{1,4096}) *, *Signature=[0-9a-f]{64}$/;

export function readAwsAuthorization(value: string): AwsAuthorizationReading {
  if (value.startsWith("AWS4-ECDSA-P256-SHA256")) return { kind: "asymmetric" };
  const [, accessKeyId, region, service, signedHeaders] = HEADER.exec(value) ?? [];
  if (
    accessKeyId === undefined ||
    region === undefined ||
    service === undefined ||
    signedHeaders === undefined
  )
    return { kind: "unreadable" };
  return {
    kind: "signed",
    authorization: { accessKeyId, region, service, signedHeaders: signedHeaders.split(";") },
  };
}
